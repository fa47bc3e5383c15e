# Three wireless nodes in a row with AODV. Arguments: old or new (format), file, ON or OFF (MAC).
set ns [new Simulator]
if {[lindex $argv 0] eq "new"} { $ns use-newtrace }
set f [open [lindex $argv 1] w]
$ns trace-all $f
set topo [new Topography]
$topo load_flatgrid 600 600
set god [create-god 3]
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 10 -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -channelType Channel/WirelessChannel -topoInstance $topo -agentTrace ON -routerTrace ON -macTrace [lindex $argv 2] -movementTrace OFF
for {set i 0} {$i < 3} {incr i} {
  set n($i) [$ns node]
  $n($i) random-motion 0
  $n($i) set X_ [expr 50 + 200*$i]
  $n($i) set Y_ 100
  $n($i) set Z_ 0
}
set u [new Agent/UDP]
$u set fid_ 1
$ns attach-agent $n(0) $u
set c [new Application/Traffic/CBR]
$c set packetSize_ 512
$c set rate_ 600kb
$c attach-agent $u
set s [new Agent/Null]
$ns attach-agent $n(2) $s
$ns connect $u $s
set t [new Agent/TCP]
$t set fid_ 2
$ns attach-agent $n(0) $t
set k [new Agent/TCPSink]
$ns attach-agent $n(2) $k
$ns connect $t $k
set g [new Application/FTP]
$g attach-agent $t
$ns at 0.5 "$c start"
$ns at 1.0 "$g start"
$ns at 2.0 "$ns halt"
$ns run
close $f
