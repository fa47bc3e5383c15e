# The dumbbell of Nor, Hassan and Almomani (2010), for ns-2.35.
#
#   ns nor2010.tcl TRACE DELAY BACKGROUND KIND FLOWS RATE SIZE SSTHRESH START STOP
#
# DELAY is the bottleneck's; BACKGROUND 1 has an FTP over TCP from 0 s, 0 has none. FLOWS flows of KIND
# (UDP, CCID2 or CCID3) send RATE in packets of SIZE bytes, the first from START, each 0.2 s later.
# SSTHRESH is CCID 2's initial threshold in packets. Access links of 10 Mb/s and 1 ms, 50 packets.

set ns [new Simulator]
lassign $argv trace delay background kind flows rate size ssthresh start stop
set file [open $trace w]
$ns trace-all $file
set west [$ns node]
set east [$ns node]
proc wire {a b rate delay} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b 50
    $ns queue-limit $b $a 50
}
wire $west $east 2Mb $delay
proc pair {number sender receiver} {
    global ns west east
    set from [$ns node]
    set to [$ns node]
    wire $from $west 10Mb 1ms
    wire $east $to 10Mb 1ms
    $ns attach-agent $from $sender
    $ns attach-agent $to $receiver
    $ns connect $sender $receiver
    $sender set fid_ $number
    $receiver set fid_ $number
}
if {$background} {
    set tcp [new Agent/TCP]
    pair 9 $tcp [new Agent/TCPSink]
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0.0 "$ftp start"
}
array set classes {
    UDP {Agent/UDP Agent/Null} CCID2 {Agent/DCCP/TCPlike Agent/DCCP/TCPlike}
    CCID3 {Agent/DCCP/TFRC Agent/DCCP/TFRC}
}
lassign $classes($kind) sending sinking
for {set i 0} {$i < $flows} {incr i} {
    set sender [new $sending]
    set receiver [new $sinking]
    $sender set packetSize_ $size
    if {$kind eq "CCID2"} { $sender set initial_ssthresh_ $ssthresh }
    pair $i $sender $receiver
    if {$kind ne "UDP"} { $ns at 0.0 "$receiver listen" }
    set traffic [new Application/Traffic/CBR]
    $traffic set packetSize_ $size
    $traffic set rate_ $rate
    $traffic attach-agent $sender
    $ns at [expr {$start + 0.2 * $i}] "$traffic start"
    $ns at $stop "$traffic stop"
}
$ns at $stop "$ns flush-trace; close $file; exit 0"
$ns run
