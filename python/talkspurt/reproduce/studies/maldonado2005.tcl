# The dumbbell of Maldonado, Baset and Schulzrinne (2005) for ns-2.35, with TFRC as ns-2 has it.
#
#   ns maldonado2005.tcl TRACE TCPS TFRCS SOURCES SECONDS
#
# TCPS of TCP and TFRCS of TFRC flows over 1.5 Mb/s, 20 ms and RED with ns-2's own parameters, limit 50,
# beside SOURCES heavy-tailed on/off UDP sources (200 kb/s for 1 s, silent for 2 s on average, index
# 1.5). Access links of 10 Mb/s and 1 ms. Only the bottleneck is traced.

set ns [new Simulator]
lassign $argv trace tcps tfrcs sources seconds
set file [open $trace w]
set west [$ns node]
set east [$ns node]
$ns duplex-link $west $east 1.5Mb 20ms RED
$ns queue-limit $west $east 50
$ns queue-limit $east $west 50
$ns trace-queue $west $east $file
set flow 0
proc pair {sender receiver} {
    global ns west east flow
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $west 10Mb 1ms DropTail
    $ns duplex-link $east $to 10Mb 1ms DropTail
    $ns attach-agent $from $sender
    $ns attach-agent $to $receiver
    $ns connect $sender $receiver
    $sender set fid_ $flow
    incr flow
}
for {set i 0} {$i < $tcps} {incr i} {
    set tcp [new Agent/TCP/Sack1]
    $tcp set window_ 100
    pair $tcp [new Agent/TCPSink/Sack1]
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {2.0 * $i / $tcps}] "$ftp start"
}
for {set i 0} {$i < $tfrcs} {incr i} {
    set tfrc [new Agent/TFRC]
    pair $tfrc [new Agent/TFRCSink]
    $ns at [expr {2.0 * ($i + 0.5) / $tfrcs}] "$tfrc start"
}
for {set i 0} {$i < $sources} {incr i} {
    set udp [new Agent/UDP]
    pair $udp [new Agent/Null]
    set web [new Application/Traffic/Pareto]
    $web set packetSize_ 500
    $web set burst_time_ 1s
    $web set idle_time_ 2s
    $web set rate_ 200k
    $web set shape_ 1.5
    $web attach-agent $udp
    $ns at 0.0 "$web start"
}
$ns at $seconds "$ns flush-trace; close $file; exit 0"
$ns run
