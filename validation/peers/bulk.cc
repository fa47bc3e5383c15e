// N SACK TCPs over one DropTail bottleneck in ns-3: the counterpart of bulk.tcl and of the scenario in
// run.py.
//
//   bulk FLOWS PACKETS SECONDS NOISE     places in the queue, bound of the senders' noise in seconds
//
// Prints one JSON object: packets sent and dropped at the bottleneck.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>

using namespace ns3;

namespace
{

// A cable on which what the first device sends takes a little longer, each packet another time; who
// would overtake arrives with the one before.
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

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, const char* delay, uint32_t places, double noise)
{
    Ptr<NoisyCable> cable = CreateObject<NoisyCable>();
    cable->noise = noise;
    cable->SetAttribute("Delay", StringValue(delay));
    NetDeviceContainer devices;
    for (auto node : {a, b})
    {
        Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
        device->SetAddress(Mac48Address::Allocate());
        device->SetDataRate(DataRate("100Mbps"));
        Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, places));
        device->SetQueue(queue);
        node->AddDevice(device);
        device->Attach(cable);
        Ptr<NetDeviceQueueInterface> interface = CreateObject<NetDeviceQueueInterface>();
        interface->GetTxQueue(0)->ConnectQueueTraces(queue);
        device->AggregateObject(interface);
        devices.Add(device);
    }
    return devices;
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 5)
    {
        std::fprintf(stderr, "usage: bulk FLOWS PACKETS SECONDS NOISE\n");
        return 2;
    }
    uint32_t flows = std::atoi(argv[1]);
    uint32_t places = std::atoi(argv[2]);
    double seconds = std::atof(argv[3]);
    double noise = std::atof(argv[4]);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer from(flows);
    NodeContainer to(flows);
    NodeContainer routers(2);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    TrafficControlHelper none;
    auto join = [&](Ptr<Node> a, Ptr<Node> b, const char* delay, uint32_t room, double jitter) {
        NetDeviceContainer devices = Connect(a, b, delay, room, jitter);
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        none.Uninstall(devices);
        return std::make_pair(devices, interfaces);
    };
    auto onward = [&](Ptr<Node> node, Ipv4Address via) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(via, 1);
    };
    auto [core, ends] = join(routers.Get(0), routers.Get(1), "20ms", places, 0);
    onward(routers.Get(0), ends.GetAddress(1));
    onward(routers.Get(1), ends.GetAddress(0));
    uint64_t drops = 0;
    auto count = [&drops](Ptr<const Packet>) { drops++; };
    // Without a queue discipline ns-3 drops in the traffic control layer once the device is full.
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        Callback<void, Ptr<const Packet>>(count));
    for (uint32_t i = 0; i < flows; i++)
    {
        auto near = join(from.Get(i), routers.Get(0), "1ms", 1000, noise).second;
        auto far = join(to.Get(i), routers.Get(1), "1ms", 1000, 0).second;
        onward(from.Get(i), near.GetAddress(1));
        onward(to.Get(i), far.GetAddress(1));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sink.Install(to.Get(i)).Start(Seconds(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(far.GetAddress(0), 5000));
        bulk.SetAttribute("SendSize", UintegerValue(1000));
        bulk.Install(from.Get(i)).Start(Seconds(double(i) / flows));
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(core.Get(0))->GetQueue();
    uint64_t sent = queue->GetTotalReceivedPackets() - queue->GetNPackets();
    std::printf("{\"packets\": %llu, \"drops\": %llu}\n",
                (unsigned long long)sent,
                (unsigned long long)(drops + queue->GetTotalDroppedPackets()));
    Simulator::Destroy();
    return 0;
}
