// Feeds the NADA controller of github.com/cisco/ns3-rmcat with reports and prints its rate every so often; `nada.sh`
// compiles it together with that controller.
#include <cstdio>
#include <cstdlib>
#include "nada-controller.h"

static void quiet(const std::string &) {}

int main(int, char **argv) {
    rmcat::NadaController nada;
    nada.setLogCallback(quiet);
    const unsigned every = std::atoi(argv[1]);
    char kind;
    unsigned long feedbacks = 0;
    while (std::scanf(" %c", &kind) == 1) {
        unsigned long now;
        if (kind == 'S') {
            unsigned sequence, bytes;
            if (std::scanf("%lu %u %u", &now, &sequence, &bytes) != 3 ||
                !nada.processSendPacket(now, sequence, bytes)) return 1;
            continue;
        }
        unsigned count;
        if (std::scanf("%lu %u", &now, &count) != 2) return 1;
        std::vector<rmcat::SenderBasedController::FeedbackItem> batch;
        for (unsigned i = 0; i < count; ++i) {
            unsigned sequence;
            unsigned long at;
            if (std::scanf("%u %lu", &sequence, &at) != 2) return 1;
            batch.push_back({static_cast<uint16_t>(sequence), at, 0});
        }
        // The receiver's clock is an hour ahead, and the controller asserts that it is not.
        for (auto &one : batch) one.rxTimestampUs -= 3600000000UL;
        if (!nada.processFeedbackBatch(now, batch)) return 2;
        if (++feedbacks % every == 0) std::printf("%.12g\n", static_cast<double>(nada.getBandwidth(now)));
    }
    return 0;
}
