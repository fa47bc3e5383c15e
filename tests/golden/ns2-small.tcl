# Small
#
# scenario for ns-2.35, written by talkspurt VERSION.
#
#   ns scenario.tcl [TRACE]      writes its trace, scenario.tr by default: 156 kB or less
#
# Each line ends with its source: a line of the scenario, --set, or a default.
# * playout and opinion scores are left out: ns-2 plays nothing
# * flows.call.start_spread: random in ns-2; 0s for none
# * losses on links are random in ns-2; compare several seeds

set trace_file "./scenario.tr"
if {$argc > 0} { set trace_file [lindex $argv 0] }
set ns [new Simulator]
set rng [new RNG]
$rng seed 2030201244                                                 ;# line 3: seed = 7; small seeds give ns-2 similar streams
Trace set show_sctphdr_ 1
set trace [open $trace_file w]
$ns trace-all $trace
# Only the routes written below.
RouteLogic instproc configure {} { return 0 }
proc finish {} {
    global ns trace
    $ns flush-trace
    close $trace
    puts {talkspurt: the run is complete}
    exit 0
}

# Losses on the medium: behind the transmitter and the propagation, and in the trace.
proc lossy {from to probability} {
    global ns rng trace
    set link [$ns link $from $to]
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $probability
    set draw [new RandomVariable/Uniform]
    $draw use-rng $rng
    $errors ranvar $draw
    set lost [$ns create-trace Drop $trace $from $to]
    $lost target [new Agent/Null]
    $errors drop-target $lost
    $errors target [[$link link] target]
    [$link link] target $errors
}

# Nodes: all that links and flows name
set n(west) [$ns node]
set n(east) [$ns node]

# links.sky
Queue/DropTail set queue_in_bytes_ false
$ns simplex-link $n(west) $n(east) 256000 0.12 DropTail              ;# line 11: links.sky.rate = "256kbit/s"; delay = "120ms"
$ns queue-limit $n(west) $n(east) 13                                 ;# line 13: links.sky.queue.packets = 12; ns-2 lets one fewer wait than it says
lossy $n(west) $n(east) 0.01                                         ;# line 14: links.sky.loss = 0.01
Queue/DropTail set queue_in_bytes_ false
$ns simplex-link $n(east) $n(west) 64000 0.12 DropTail               ;# line 15: links.sky.back.rate = "64kbit/s"; delay = "120ms"
$ns queue-limit $n(east) $n(west) 13                                 ;# line 13: links.sky.queue.packets = 12; ns-2 lets one fewer wait than it says

# Routes: those that the flows take here, and no others
$n(west) add-route [$n(east) id] [[$ns link $n(west) $n(east)] head]
$n(east) add-route [$n(west) id] [[$ns link $n(east) $n(west)] head]

# flows.call
set t(call) [expr {0 + [$rng uniform 0 0.005]}]                      ;# --set: flows.call.start_spread = "5ms"
set a(call) [new Agent/UDP]                                          ;# line 21: flows.call.transport.kind
$a(call) set packetSize_ 160                                         ;# line 20: flows.call.sizing = "ns2"
$a(call) set fid_ 1
$ns attach-agent $n(west) $a(call)
set b(call) [new Agent/Null]                                         ;# line 21: flows.call.transport.kind
$b(call) set fid_ 1
$ns attach-agent $n(east) $b(call)
$ns connect $a(call) $b(call)
set s(call) [new Application/Traffic/CBR]                            ;# line 22: flows.call.source.kind = "speech"
$s(call) attach-agent $a(call)
$s(call) set packetSize_ 160                                         ;# payload 160
$s(call) set rate_ 64000                                             ;# one each 0.02 s
$s(call) set maxpkts_ [expr {int((10 - $t(call) - 0.02) / 0.02 + 1 + 1e-9)}] ;# complete by the stop
$ns at [expr {$t(call) + 0.02}] "$s(call) start"                     ;# when the first unit is complete

# flows.upload
set t(upload) 2                                                      ;# line 28: flows.upload.start = "2s"
set a(upload) [new Agent/TCP/Newreno]                                ;# line 30: flows.upload.transport.kind
$a(upload) set packetSize_ 1460                                      ;# default: flows.upload.transport.mss = "1460B"
$a(upload) set tcpip_base_hdr_size_ 40                               ;# line 29: flows.upload.sizing = "ns2"
$a(upload) set ts_option_size_ 0                                     ;# line 29: flows.upload.sizing = "ns2"
$a(upload) set timestamps_ false                                     ;# line 30: flows.upload.transport.timestamps = false
$a(upload) set window_ 2739                                          ;# default: flows.upload.transport.receive_buffer = "4MB"
$a(upload) set tcpTick_ 0.001                                        ;# the clock that round trips are measured by, s
$a(upload) set rtxcur_init_ 1.0                                      ;# first timeout, s (RFC 6298 2.1)
$a(upload) set windowInit_ 10                                        ;# default: flows.upload.transport.initial_window = 10
$a(upload) set minrto_ 1                                             ;# default: flows.upload.transport.min_rto = "1s"
$a(upload) set maxrto_ 60                                            ;# default: flows.upload.transport.max_rto = "1min"
$a(upload) set fid_ 2
$ns attach-agent $n(west) $a(upload)
set b(upload) [new Agent/TCPSink/DelAck]                             ;# line 30: flows.upload.transport.kind
$b(upload) set packetSize_ 40                                        ;# line 29: flows.upload.sizing = "ns2"
$b(upload) set ts_echo_rfc1323_ false                                ;# line 30: flows.upload.transport.timestamps = false
$b(upload) set interval_ 0.04                                        ;# default: flows.upload.transport.ack_delay = "40ms"
$b(upload) set fid_ 2
$ns attach-agent $n(east) $b(upload)
$ns connect $a(upload) $b(upload)
$ns at $t(upload) "$a(upload) set ssthresh_ 8"                       ;# line 30: flows.upload.transport.initial_ssthresh = 8
set s(upload) [new Application/FTP]                                  ;# line 31: flows.upload.source.kind = "bulk"
$s(upload) attach-agent $a(upload)
$ns at $t(upload) "$s(upload) start"
$ns at 10 "$s(upload) stop"

$ns at 10 "finish"                                                   ;# line 2: duration = "10s"
$ns run
