# N SACK TCPs over one DropTail bottleneck in ns-2.35: the counterpart of bulk.cc and of the scenario
# in run.py.
#
#   ns bulk.tcl FLOWS PACKETS SECONDS NOISE     places in the queue, ns-2's overhead_ in seconds
#
# Prints one JSON object: packets sent and dropped at the bottleneck.

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
lassign $argv flows places seconds noise
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 100Mb 20ms DropTail
$ns queue-limit $left $right $places
$ns queue-limit $right $left $places
for {set i 0} {$i < $flows} {incr i} {
    set from [$ns node]
    set to [$ns node]
    foreach {a b} [list $from $left $right $to] {
        $ns duplex-link $a $b 100Mb 1ms DropTail
        $ns queue-limit $a $b 1000
        $ns queue-limit $b $a 1000
    }
    set tcp [new Agent/TCP/Sack1]
    foreach {name value} [list packetSize_ 1000 window_ 10000 windowInit_ 10 minrto_ 0.2 \
        overhead_ $noise] {
        $tcp set $name $value
    }
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {double($i) / $flows}] "$ftp start"
}
set core [$ns monitor-queue $left $right ""]
$ns at $seconds {
    puts "{\"packets\": [$core set pdepartures_], \"drops\": [$core set pdrops_]}"
    exit 0
}
$ns run
