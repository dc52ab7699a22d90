// Package awsapi is AWS in memory and in virtual time, behind the wire
// protocols of AWS: an unmodified client of the AWS SDK talks to it, in process
// or over a socket, and the instances that it launches boot machines in a
// sim.World.
//
// EC2's names on the wire are generated from the SDK's own serializers
// (wire_gen.go), so that what is answered is what a client reads. Parameters
// that EC2 does not know are refused as EC2 refuses them.
//
// # Goroutines
//
// Clients may call from several goroutines at once. A World belongs to one:
// calls must not overlap with Clock.Advance or RunUntil. Everything that
// happens later, such as an instance becoming running, happens there.
package awsapi
