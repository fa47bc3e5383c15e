# Two wired links with UDP, TCP, TFRC and SCTP; the queue of the second overflows.
set ns [new Simulator]
set f [open [lindex $argv 0] w]
$ns trace-all $f
set n0 [$ns node]
set n1 [$ns node]
set n2 [$ns node]
$ns duplex-link $n0 $n1 2Mb 5ms DropTail
$ns duplex-link $n1 $n2 256kb 20ms DropTail
$ns queue-limit $n1 $n2 8
set u [new Agent/UDP]
$u set fid_ 1
$ns attach-agent $n0 $u
set c [new Application/Traffic/CBR]
$c set packetSize_ 200
$c set rate_ 80kb
$c attach-agent $u
set s [new Agent/Null]
$ns attach-agent $n2 $s
$ns connect $u $s
set t [new Agent/TCP/Newreno]
$t set fid_ 2
$ns attach-agent $n0 $t
set k [new Agent/TCPSink]
$ns attach-agent $n2 $k
$ns connect $t $k
set g [new Application/FTP]
$g attach-agent $t
set r [new Agent/UDP]
$r set fid_ 3
$ns attach-agent $n0 $r
set rs [new Agent/Null]
$ns attach-agent $n2 $rs
$ns connect $r $rs
$r set packetSize_ 180
set rc [new Application/Traffic/CBR]
$rc set packetSize_ 180
$rc set rate_ 24kb
$rc attach-agent $r
set q [new Agent/TFRC]
$q set fid_ 4
$q set packetSize_ 500
$ns attach-agent $n0 $q
set qs [new Agent/TFRCSink]
$ns attach-agent $n2 $qs
$ns connect $q $qs
set qa [new Application/FTP]
$qa attach-agent $q
set sc [new Agent/SCTP]
$sc set fid_ 5
$ns attach-agent $n0 $sc
set sd [new Agent/SCTP]
$sd set fid_ 5
$ns attach-agent $n2 $sd
$ns connect $sc $sd
set sf [new Application/FTP]
$sf attach-agent $sc
$ns at 0.1 "$c start"
$ns at 0.2 "$g start"
$ns at 0.3 "$rc start"
$ns at 0.4 "$qa start"
$ns at 0.5 "$sf start"
$ns at 2.5 "$c stop"
$ns at 3.0 "$ns flush-trace; close $f; exit 0"
$ns run
