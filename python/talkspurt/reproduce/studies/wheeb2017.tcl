# Source, two routers, destination, as Wheeb (2017) says, for ns-2.35.
#
#   ns wheeb2017.tcl TRACE PROTOCOL RATE SIZE ACCESS ACCESS_DELAY BOTTLENECK DELAY
#
# PROTOCOL is UDP, DCCP (CCID 2), SCTP or TFRC; RATE and SIZE (bytes) are the CBR source's, ACCESS and
# ACCESS_DELAY are of the two outer links, BOTTLENECK and DELAY of the middle one. Fifty seconds.

set ns [new Simulator]
lassign $argv trace protocol rate size access access_delay bottleneck delay
set file [open $trace w]
$ns trace-all $file
set source [$ns node]
set first [$ns node]
set second [$ns node]
set destination [$ns node]
$ns duplex-link $source $first $access $access_delay DropTail
$ns duplex-link $first $second $bottleneck $delay DropTail
$ns duplex-link $second $destination $access $access_delay DropTail
foreach {a b} [list $source $first $first $second $second $destination] {
    $ns queue-limit $a $b 10
    $ns queue-limit $b $a 10
}
array set classes {
    UDP {Agent/UDP Agent/Null} SCTP {Agent/SCTP Agent/SCTP}
    DCCP {Agent/DCCP/TCPlike Agent/DCCP/TCPlike} TFRC {Agent/TFRC Agent/TFRCSink}
}
lassign $classes($protocol) sending sinking
set sender [new $sending]
set sink [new $sinking]
$ns attach-agent $source $sender
$ns attach-agent $destination $sink
$ns connect $sender $sink
if {$protocol eq "DCCP"} { $ns at 0.0 "$sink listen" }
if {$protocol in {UDP DCCP}} { $sender set packetSize_ $size }
set traffic [new Application/Traffic/CBR]
$traffic set packetSize_ $size
$traffic set rate_ $rate
$traffic attach-agent $sender
$ns at 0.0 "$traffic start"
$ns at 50.0 "$ns flush-trace; close $file; exit 0"
$ns run
