# SACK TCPs and TFRCs over one bottleneck in ns-2.35: the counterpart of the scenario in shares.py.
#
#   ns shares.tcl TCPS TFRCS QUEUE SECONDS SEED NOISE     QUEUE is RED or DropTail
#
# Every sender delays each packet by a uniform random time of up to NOISE seconds, as hosts do (overhead_ of
# ns-2). Prints one JSON object: the packets of TCP and of TFRC that the bottleneck sent, and those that
# it dropped, after the first fifth of the run.

remove-all-packet-headers
add-packet-header IP TCP TFRC TFRC_ACK Flags
set ns [new Simulator]
lassign $argv tcps tfrcs queue seconds seed noise
ns-random $seed
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set thresh_ 20
Queue/RED set maxthresh_ 80
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set gentle_ true
Queue/RED set mean_pktsize_ 1000
set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right 15Mb 20ms $queue
$ns simplex-link $right $left 15Mb 20ms DropTail
$ns queue-limit $left $right 200
$ns queue-limit $right $left 1000
set all [expr {$tcps + $tfrcs}]
for {set i 0} {$i < $all} {incr i} {
    set from [$ns node]
    set to [$ns node]
    foreach {a b} [list $from $left $right $to] {
        $ns duplex-link $a $b 100Mb 1ms DropTail
        $ns queue-limit $a $b 1000
        $ns queue-limit $b $a 1000
    }
    if {$i < $tcps} {
        set agent [new Agent/TCP/Sack1]
        foreach {name value} {packetSize_ 1000 window_ 10000 windowInit_ 10 minrto_ 0.2} {
            $agent set $name $value
        }
        set sink [new Agent/TCPSink/Sack1]
        set application [new Application/FTP]
        $application attach-agent $agent
        set start "$application start"
        set at [expr {double($i) / $tcps}]
    } else {
        set agent [new Agent/TFRC]
        $agent set packetSize_ 1000
        set sink [new Agent/TFRCSink]
        set start "$agent start"
        set at [expr {double($i - $tcps) / $tfrcs}]
    }
    $agent set fid_ $i
    $agent set overhead_ $noise
    $ns attach-agent $from $agent
    $ns attach-agent $to $sink
    $ns connect $agent $sink
    $ns at $at $start
}
# A monitor with one counter per flow.
set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $monitor 0

proc counts {} {
    global monitor tcps
    set tcp 0
    set tfrc 0
    foreach flow [$monitor flows] {
        set sent [expr {int([$flow set pdepartures_])}]
        if {[$flow set flowid_] < $tcps} { incr tcp $sent } else { incr tfrc $sent }
    }
    return [list $tcp $tfrc [expr {int([$monitor set pdrops_])}]]
}
$ns at [expr {$seconds / 5.0}] { set before [counts] }
$ns at $seconds {
    foreach name {tcp tfrc drops} was $before is [counts] {
        lappend words "\"$name\": [expr {$is - $was}]"
    }
    puts "{[join $words {, }]}"
    exit 0
}
$ns run
