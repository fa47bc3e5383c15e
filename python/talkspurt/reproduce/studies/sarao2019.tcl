# Two nodes and a conversation, as Sarao (2019) says, for ns-2.35.
#
#   ns sarao2019.tcl TRACE PROTOCOL WIRING
#
# PROTOCOL is UDP, TCP, SCTP, TFRC, CCID2 or CCID3. WIRING is `sound` (each sender has its sink) or
# `bare`: one agent of the class at each end, connected to each other, no sink and no listener.

set ns [new Simulator]
lassign $argv trace protocol wiring
set file [open $trace w]
$ns trace-all $file
set west [$ns node]
set east [$ns node]
$ns duplex-link $west $east 256kb 50ms DropTail
$ns queue-limit $west $east 50
$ns queue-limit $east $west 50

proc speak {agent} {
    global ns
    set voice [new Application/Traffic/CBR]
    $voice set packetSize_ 128
    $voice set interval_ 0.020
    $voice attach-agent $agent
    $ns at 0.1 "$voice start"
    $ns at 10.0 "$voice stop"
}
array set classes {
    UDP {Agent/UDP Agent/Null} TCP {Agent/TCP Agent/TCPSink} SCTP {Agent/SCTP Agent/SCTP}
    TFRC {Agent/TFRC Agent/TFRCSink} CCID2 {Agent/DCCP/TCPlike Agent/DCCP/TCPlike}
    CCID3 {Agent/DCCP/TFRC Agent/DCCP/TFRC}
}
lassign $classes($protocol) sending sinking
proc call {from to class other} {
    global ns
    set caller [new $class]
    set callee [new $other]
    $ns attach-agent $from $caller
    $ns attach-agent $to $callee
    $ns connect $caller $callee
    speak $caller
    return $callee
}
if {$wiring eq "sound"} {
    foreach {from to} [list $west $east $east $west] {
        set callee [call $from $to $sending $sinking]
        if {[string match CCID* $protocol]} { $ns at 0.0 "$callee listen" }
    }
} else {
    speak [call $west $east $sending $sending]
}
$ns at 10.5 "$ns flush-trace; close $file; exit 0"
$ns run
