# N flows over one bottleneck in ns-2.35: the counterpart of dumbbell.cc and of workloads.rs.
#
#   ns dumbbell.tcl NAME=VALUE ...
#
#   kinds=sack,...  the kinds of flows: sack, tfrc, ccid2, ccid3, sctp or voice; each=50 of each kind
#   mbps=100 limit=250 queue=DropTail    the bottleneck; queue=RED: 20, 80, 0.002, 0.1, gentle
#   seconds=100 noise=0                  overhead_ of the senders, seconds
#   lean=1     only the packet headers and routes in use, which is the fastest configuration of ns-2
#   count=1    monitors on every link count hops (in a separate run, because they cost time)
#   trace=FILE a line for every packet on every link
#   ends=FILE  the same on the first and last link of the data path only, to compute delay and jitter
#
# Prints one JSON object. `events` counts all events given to the scheduler; both kinds of run have
# the same number.

array set opt {kinds sack each 50 mbps 100 limit 250 queue DropTail seconds 100 noise 0 lean 1 count 0 trace {} ends {}}
foreach word $argv {
    lassign [split $word =] name value
    if {![info exists opt($name)]} { error "no option $name" }
    set opt($name) $value
}
set kinds [split $opt(kinds) ,]
set flows [expr {$opt(each) * [llength $kinds]}]

array set headers {
    sack {TCP Flags} tfrc {TFRC TFRC_ACK Flags} voice {RTP Flags} sctp {SCTP Flags}
    ccid2 {DCCP DCCP_REQ DCCP_RESP DCCP_ACK DCCP_DATA DCCP_DATAACK DCCP_CLOSE DCCP_CLOSEREQ DCCP_RESET Flags}
    ccid3 {DCCP DCCP_REQ DCCP_RESP DCCP_ACK DCCP_DATA DCCP_DATAACK DCCP_CLOSE DCCP_CLOSEREQ DCCP_RESET Flags}
}
if {$opt(lean)} {
    remove-all-packet-headers
    add-packet-header IP
    foreach kind $kinds { eval add-packet-header $headers($kind) }
}
set ns [new Simulator]
foreach {name value} {bytes_ false queue_in_bytes_ false thresh_ 20 maxthresh_ 80 q_weight_ 0.002
    linterm_ 10 gentle_ true adaptive_ 0 setbit_ false mean_pktsize_ 1000 idle_pktsize_ 1000} {
    Queue/RED set $name $value
}
if {$opt(trace) ne ""} {
    set trace [open $opt(trace) w]
    $ns trace-all $trace
}

# The network.
set L [$ns node]
set R [$ns node]
set links [list $L $R $R $L]
$ns duplex-link $L $R $opt(mbps)Mb 20ms $opt(queue)
$ns queue-limit $L $R $opt(limit)
$ns queue-limit $R $L $opt(limit)
for {set i 0} {$i < $flows} {incr i} {
    set left($i) [$ns node]
    set right($i) [$ns node]
    foreach {a b} [list $left($i) $L $R $right($i)] {
        $ns duplex-link $a $b 100Mb 1ms DropTail
        $ns queue-limit $a $b 1000
        $ns queue-limit $b $a 1000
        lappend links $a $b $b $a
    }
}
if {$opt(ends) ne ""} {
    set trace [open $opt(ends) w]
    for {set i 0} {$i < $flows} {incr i} {
        $ns trace-queue $left($i) $L $trace
        $ns trace-queue $R $right($i) $trace
    }
}
set monitors {}
if {$opt(count)} {
    foreach {a b} $links { lappend monitors [$ns monitor-queue $a $b ""] }
}
# Routes. They follow the monitors, which replace the heads of links. ns-2 computes the routes of all
# pairs.
if {$opt(lean)} {
    RouteLogic instproc configure {} { return 0 }
    set onward [[$ns link $L $R] head]
    set back [[$ns link $R $L] head]
    for {set i 0} {$i < $flows} {incr i} {
        foreach {near door far turn hall} [list $left($i) $L $right($i) $onward $R \
            $right($i) $R $left($i) $back $L] {
            $near add-route [$far id] [[$ns link $near $door] head]
            $door add-route [$far id] $turn
            $hall add-route [$far id] [[$ns link $hall $far] head]
        }
    }
}

# The flows: each procedure returns a sender, a receiver, and the object to start.
proc tuned {class settings} {
    set agent [new $class]
    foreach {name value} $settings { $agent set $name $value }
    return $agent
}
proc bulk {agent} {
    set application [new Application/FTP]
    $application attach-agent $agent
    return "$application start"
}
proc sack {i} {
    global opt
    set from [tuned Agent/TCP/Sack1 [list packetSize_ 1000 window_ 10000 windowInit_ 10 minrto_ 0.2 \
        overhead_ $opt(noise)]]
    return [list $from [new Agent/TCPSink/Sack1] [bulk $from]]
}
proc tfrc {i} {
    global opt
    set from [tuned Agent/TFRC [list packetSize_ 1000 overhead_ $opt(noise)]]
    return [list $from [new Agent/TFRCSink] "$from start"]
}
proc dccp {class} {
    global ns
    set settings {packetSize_ 1000 use_ecn_local_ 1 use_ecn_remote_ 1 sb_size_ 1000}
    set from [tuned $class $settings]
    set to [tuned $class $settings]
    $ns at 0 "$to listen"
    return [list $from $to [bulk $from]]
}
proc ccid2 {i} { return [dccp Agent/DCCP/TCPlike] }
proc ccid3 {i} { return [dccp Agent/DCCP/TFRC] }
proc sctp {i} {
    set settings {mtu_ 1500 dataChunkSize_ 1016 useDelayedSacks_ 1 sackDelay_ 0.2 initialRto_ 1
        minRto_ 1 maxRto_ 60 initialRwnd_ 4000000 initialCwnd_ 3 initialSsthresh_ 1000000000}
    set from [tuned Agent/SCTP $settings]
    return [list $from [tuned Agent/SCTP $settings] [bulk $from]]
}
proc voice {i} {
    set from [new Agent/UDP]
    if {$i % 2 == 0} {
        set source [tuned Application/Traffic/CBR {packetSize_ 200 interval_ 0.02 random_ 0}]
    } else {
        set source [tuned Application/Traffic/Exponential {packetSize_ 200 rate_ 80k
            burst_time_ 1.004 idle_time_ 1.587}]
    }
    $source attach-agent $from
    return [list $from [new Agent/LossMonitor] "$source start"]
}
set first [$ns at 0.0 ""]
set dice [new RNG]
$dice seed 12345
for {set i 0} {$i < $flows} {incr i} {
    set kind [lindex $kinds [expr {$i / $opt(each)}]]
    lassign [$kind $i] from to start
    $from set fid_ $i
    $ns attach-agent $left($i) $from
    $ns attach-agent $right($i) $to
    $ns connect $from $to
    if {$kind eq "voice"} {
        set at [$dice uniform 0 0.02]
    } else {
        set at [expr {double($i % $opt(each)) / $opt(each)}]
    }
    $ns at $at $start
}

$ns at $opt(seconds) {
    set events [expr {[$ns at 1e9 ""] - $first}]
    set hops 0
    foreach monitor $monitors { incr hops [expr {int([$monitor set pdepartures_])}] }
    set words [list "\"events\": $events"]
    if {$opt(count)} {
        set core [lindex $monitors 0]
        lappend words "\"hops\": $hops" "\"core_packets\": [expr {int([$core set pdepartures_])}]" \
            "\"drops\": [expr {int([$core set pdrops_])}]"
    }
    if {[info exists trace]} {
        $ns flush-trace
        close $trace
    }
    puts "{[join $words {, }]}"
    exit 0
}
$ns run
