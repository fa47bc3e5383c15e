# Telephone speech over DCCP on a long path in ns-2.35. tests/test_ns2.py compares the profile `ns2` with
# these numbers.
#
#   ns large-delay.tcl KIND SSTHRESH DELAY > arrivals     KIND is TCPlike (CCID 2) or TFRC (CCID 3)
#   python3 arrivals.py arrivals                          packets that arrived in each half second
#
# The links are those of scenarios/large-delay.toml. ns-2.35 as Debian packages it (`ns2`).

set ns [new Simulator]
lassign $argv kind ssthresh delay
set trace [open "|cat" w]
set home [$ns node]
set west [$ns node]
set east [$ns node]
set office [$ns node]
$ns duplex-link $home $west 10Mb 1ms DropTail
$ns duplex-link $west $east 2Mb $delay DropTail
$ns duplex-link $east $office 10Mb 1ms DropTail
foreach {a b} [list $home $west $west $east $east $office] { $ns queue-limit $a $b 50 }
$ns trace-queue $east $office $trace

set caller [new Agent/DCCP/$kind]
set callee [new Agent/DCCP/$kind]
if {$kind == "TCPlike"} { $caller set initial_ssthresh_ $ssthresh }
$caller set packetSize_ 160
$ns attach-agent $home $caller
$ns attach-agent $office $callee
$ns connect $caller $callee

set voice [new Application/Traffic/CBR]
$voice set packetSize_ 160
$voice set rate_ 64kb
$voice attach-agent $caller
$ns at 0.0 "$callee listen"
$ns at 0.0 "$voice start"
$ns at 40.0 "$voice stop"
$ns at 41.0 "close $trace; exit 0"
$ns run
