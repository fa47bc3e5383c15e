// Probability that a frame of 1000 bytes is received, by mode and signal-to-noise ratio, from ns-3's
// error models (NIST for OFDM, DSSS for 802.11b). Prints mode, dB, probability.
#include "ns3/core-module.h"
#include "ns3/wifi-module.h"

#include <cmath>
#include <iostream>

using namespace ns3;

int main() {
  auto nist = CreateObject<NistErrorRateModel>();
  for (std::string name : {"OfdmRate6Mbps", "OfdmRate9Mbps", "OfdmRate12Mbps", "OfdmRate18Mbps",
                           "OfdmRate24Mbps", "OfdmRate36Mbps", "OfdmRate48Mbps", "OfdmRate54Mbps",
                           "DsssRate1Mbps", "DsssRate2Mbps", "DsssRate5_5Mbps", "DsssRate11Mbps"}) {
    WifiMode mode(name);
    WifiTxVector vector;
    vector.SetMode(mode);
    vector.SetChannelWidth(name[0] == 'D' ? 22 : 20);
    for (double db = -10; db <= 30; db += 0.5)
      std::cout << name << "," << db << ","
                << nist->GetChunkSuccessRate(mode, vector, std::pow(10, db / 10), 8000,
                                             1, WIFI_PPDU_FIELD_DATA)
                << "\n";
  }
}
