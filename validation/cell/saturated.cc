// Stations that saturate one 802.11b access point, in ns-3: 11 Mbit/s, long preamble, all in range of
// each other at equal power, UDP with 1472 bytes of payload. In the first seconds the stations associate
// and send one packet in turn, so that ARP has their addresses (if all start at the same time, most of
// 100 stations have no association or address seconds later). Then they saturate the cell. Prints the
// throughput at the access point's sink in Mbit/s and the number of senders; with --json=1 also the CPU
// time since saturation began. With --detection=0 receivers try to decode every frame, so that a
// collision is a frame in error (EIFS); by default ns-3 does not detect preambles below 4 dB (DIFS).
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <ctime>
#include <iostream>
#include <set>

using namespace ns3;

static uint64_t g_before = 0;

static std::set<Ipv4Address> g_senders;
static std::clock_t g_begun = 0;

static void Begin() {
  g_begun = std::clock();
}

static void Warm(Ptr<PacketSink> sink) {
  g_before = sink->GetTotalRx();
  g_senders.clear();
}

static void Received(Ptr<const Packet>, const Address& from) {
  g_senders.insert(InetSocketAddress::ConvertFrom(from).GetIpv4());
}

int main(int argc, char** argv) {
  uint32_t n = 10, run = 1;
  double seconds = 10, rts = 1e6;
  bool detection = true, json = false;
  CommandLine cmd;
  cmd.AddValue("n", "stations", n);
  cmd.AddValue("seconds", "seconds measured", seconds);
  cmd.AddValue("rts", "RTS threshold in bytes", rts);
  cmd.AddValue("detection", "preambles need 4 dB", detection);
  cmd.AddValue("json", "print a JSON object", json);
  cmd.AddValue("run", "number of the run", run);
  cmd.Parse(argc, argv);
  RngSeedManager::SetRun(run);
  Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(uint32_t(rts)));

  NodeContainer stations(n), ap(1);
  YansWifiPhyHelper phy;
  phy.SetChannel(YansWifiChannelHelper::Default().Create());
  if (!detection) phy.DisablePreambleDetectionModel();
  WifiHelper wifi;
  wifi.SetStandard(WIFI_STANDARD_80211b);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
                               StringValue("DsssRate11Mbps"), "ControlMode",
                               StringValue("DsssRate2Mbps"));
  WifiMacHelper mac;
  mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(Ssid("cell")));
  NetDeviceContainer devices = wifi.Install(phy, mac, stations);
  mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(Ssid("cell")));
  NetDeviceContainer door = wifi.Install(phy, mac, ap);

  // Path loss is constant within one metre, so that all stations have the same power.
  MobilityHelper mobility;
  auto at = CreateObject<ListPositionAllocator>();
  for (uint32_t i = 0; i <= n; i++) at->Add(Vector(0.005 * i, 0, 0));
  mobility.SetPositionAllocator(at);
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(stations);
  mobility.Install(ap);

  InternetStackHelper internet;
  internet.Install(stations);
  internet.Install(ap);
  Ipv4AddressHelper addresses("10.1.0.0", "255.255.0.0");
  Ipv4Address to = addresses.Assign(door).GetAddress(0);
  addresses.Assign(devices);
  PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
  auto sinks = sink.Install(ap);
  OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(to, 9));
  source.SetConstantRate(DataRate("8Mbps"), 1472);
  const double start = 3 + 0.02 * n, warm = start + 1;
  for (uint32_t i = 0; i < n; i++) {
    auto one = source.Install(stations.Get(i));
    one.Start(Seconds(start));
    one.Stop(Seconds(warm + seconds));
    OnOffHelper first("ns3::UdpSocketFactory", InetSocketAddress(to, 9));
    first.SetConstantRate(DataRate("1Mbps"), 100);
    first.SetAttribute("MaxBytes", UintegerValue(100));
    first.Install(stations.Get(i)).Start(Seconds(2 + 0.02 * i));
  }
  auto counter = DynamicCast<PacketSink>(sinks.Get(0));
  counter->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
  Simulator::Schedule(Seconds(start), &Begin);
  Simulator::Schedule(Seconds(warm), &Warm, counter);
  Simulator::Stop(Seconds(warm + seconds));
  Simulator::Run();
  const double goodput = (counter->GetTotalRx() - g_before) * 8 / seconds / 1e6;
  if (json)
    std::cout << "{\"goodput_mbps\": " << goodput << ", \"stations\": " << g_senders.size()
              << ", \"saturated_cpu_s\": " << double(std::clock() - g_begun) / CLOCKS_PER_SEC << "}"
              << std::endl;
  else
    std::cout << goodput << "," << g_senders.size() << std::endl;
  Simulator::Destroy();
}
