// N flows over one bottleneck in ns-3: the counterpart of dumbbell.tcl and of workloads.rs.
//
//   dumbbell --kind=sack|voice --flows=50 --mbps=100 --limit=250 --seconds=100 --noise=0 --trace=FOLDER
//
// Bulk TCP or calls. With --trace, every device writes one line for each packet (`ns3.tr`). Prints one
// JSON object. Hops are counted from the devices' queues, without extra trace sinks. Calls with pauses
// begin with a talkspurt, as ours do.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>

using namespace ns3;

namespace
{

// A channel that delays each packet of the first device by a random time. Packets are not reordered: a
// packet that would overtake another arrives together with it.
class NoisyCable : public PointToPointChannel
{
  public:
    double noise = 0;

    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time took) override
    {
        if (noise == 0 || from != GetPointToPointDevice(0))
        {
            return PointToPointChannel::TransmitStart(packet, from, took);
        }
        Time arrival = Simulator::Now() + took + MilliSeconds(1) + Seconds(m_uniform->GetValue(0, noise));
        m_last = Max(arrival, m_last);
        Ptr<PointToPointNetDevice> to = GetPointToPointDevice(1);
        Simulator::ScheduleWithContext(to->GetNode()->GetId(),
                                       m_last - Simulator::Now(),
                                       &PointToPointNetDevice::Receive,
                                       to,
                                       packet->Copy());
        return true;
    }

  private:
    Ptr<UniformRandomVariable> m_uniform = CreateObject<UniformRandomVariable>();
    Time m_last;
};

Ptr<PointToPointNetDevice>
Device(Ptr<Node> node, Ptr<PointToPointChannel> cable, double mbps, uint32_t places)
{
    auto device = CreateObject<PointToPointNetDevice>();
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(DataRate(uint64_t(mbps * 1e6)));
    auto queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, places));
    device->SetQueue(queue);
    node->AddDevice(device);
    device->Attach(cable);
    auto interface = CreateObject<NetDeviceQueueInterface>();
    interface->GetTxQueue(0)->ConnectQueueTraces(queue);
    device->AggregateObject(interface);
    return device;
}

} // namespace

int
main(int argc, char** argv)
{
    std::string kind = "sack", trace;
    uint32_t flows = 50, limit = 250;
    double mbps = 100, seconds = 100, noise = 0;
    CommandLine cmd(__FILE__);
    cmd.AddValue("kind", "sack or voice", kind);
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("mbps", "rate of the bottleneck", mbps);
    cmd.AddValue("limit", "packets its queue holds", limit);
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("noise", "bound of the senders' noise, seconds", noise);
    cmd.AddValue("trace", "folder for a trace of every device", trace);
    cmd.Parse(argc, argv);
    const bool voice = kind == "voice";

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer from(flows), to(flows), routers(2);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    TrafficControlHelper none;
    NetDeviceContainer all;
    auto join = [&](Ptr<Node> a, Ptr<Node> b, double rate, const char* delay, uint32_t places, double jitter) {
        auto cable = CreateObject<NoisyCable>();
        cable->noise = jitter;
        cable->SetAttribute("Delay", StringValue(delay));
        NetDeviceContainer devices(Device(a, cable, rate, places));
        devices.Add(Device(b, cable, rate, places));
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        none.Uninstall(devices);
        all.Add(devices);
        return interfaces;
    };
    auto onward = [&](Ptr<Node> node, Ipv4Address via) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(via, 1);
    };
    auto core = join(routers.Get(0), routers.Get(1), mbps, "20ms", limit, 0);
    onward(routers.Get(0), core.GetAddress(1));
    onward(routers.Get(1), core.GetAddress(0));
    // Without a queue discipline ns-3 drops in the traffic control layer once the device is full.
    uint64_t drops = 0;
    auto count = [&drops](Ptr<const Packet>) { drops++; };
    Callback<void, Ptr<const Packet>> onDrop(count);
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", onDrop);

    std::string sockets = voice ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
    Ptr<UniformRandomVariable> uniform = voice ? CreateObject<UniformRandomVariable>() : nullptr;
    for (uint32_t i = 0; i < flows; i++)
    {
        auto near = join(from.Get(i), routers.Get(0), 100, "1ms", 1000, noise);
        auto far = join(to.Get(i), routers.Get(1), 100, "1ms", 1000, 0);
        onward(from.Get(i), near.GetAddress(1));
        onward(to.Get(i), far.GetAddress(1));
        PacketSinkHelper sink(sockets, InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sink.Install(to.Get(i)).Start(Seconds(0));
        InetSocketAddress there(far.GetAddress(0), 5000);
        if (voice)
        {
            OnOffHelper call(sockets, there);
            call.SetAttribute("PacketSize", UintegerValue(172)); // 200 bytes with IP and UDP headers
            call.SetAttribute("DataRate", StringValue("68800bps"));
            const bool always = i % 2 == 0;
            call.SetAttribute("OnTime",
                              StringValue(always ? "ns3::ConstantRandomVariable[Constant=1e6]"
                                                 : "ns3::ExponentialRandomVariable[Mean=1.004]"));
            // The application starts in its off period, whose initial length is zero.
            call.SetAttribute("OffTime", StringValue("ns3::ConstantRandomVariable[Constant=0]"));
            ApplicationContainer source = call.Install(from.Get(i));
            source.Start(Seconds(uniform->GetValue(0, 0.02)));
            if (!always)
            {
                Simulator::Schedule(MilliSeconds(21), [application = source.Get(0)] {
                    application->SetAttribute(
                        "OffTime",
                        StringValue("ns3::ExponentialRandomVariable[Mean=1.587]"));
                });
            }
        }
        else
        {
            BulkSendHelper bulk(sockets, there);
            bulk.SetAttribute("SendSize", UintegerValue(1000));
            bulk.Install(from.Get(i)).Start(Seconds(double(i) / flows));
        }
    }
    if (!trace.empty())
    {
        PointToPointHelper writer;
        AsciiTraceHelper ascii;
        writer.EnableAsciiAll(ascii.CreateFileStream(trace + "/ns3.tr"));
    }
    FlowMonitorHelper monitors;
    Ptr<FlowMonitor> monitor = voice ? monitors.InstallAll() : nullptr;
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();

    uint64_t hops = 0, first = 0;
    for (uint32_t i = 0; i < all.GetN(); i++)
    {
        auto queue = DynamicCast<PointToPointNetDevice>(all.Get(i))->GetQueue();
        uint64_t sent = queue->GetTotalReceivedPackets() - queue->GetNPackets();
        hops += sent;
        if (i == 0)
        {
            first = sent;
            drops += queue->GetTotalDroppedPackets();
        }
    }
    std::printf("{\"hops\": %llu, \"core_packets\": %llu, \"drops\": %llu, \"events\": %llu",
                (unsigned long long)hops,
                (unsigned long long)first,
                (unsigned long long)drops,
                (unsigned long long)Simulator::GetEventCount());
    if (monitor)
    {
        double packets = 0, delay = 0;
        for (auto& [id, flow] : monitor->GetFlowStats())
        {
            packets += flow.rxPackets;
            delay += flow.delaySum.GetSeconds();
        }
        std::printf(", \"delay_mean_s\": %.6f", delay / packets);
    }
    std::printf("}\n");
    Simulator::Destroy();
    return 0;
}
