// Package awsapi is AWS in memory and in virtual time, behind the wire
// protocols of AWS: an unmodified client of the AWS SDK talks to it, in process
// or over a socket, and the instances that it launches boot machines in a
// sim.World.
//
// EC2's names on the wire are generated from the SDK's own serializers
// (wire_gen.go), so that what is answered is what a client reads. Parameters
// that EC2 does not know are refused as EC2 refuses them.
//
// # Clients
//
// All services are behind one address: which one a request is for is in the
// scope of its signature, which is not verified. In process, whatever host the
// SDK resolves is the endpoint:
//
//	cfg := aws.Config{
//		Region:      endpoint.Region(),
//		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
//		HTTPClient:  endpoint.HTTPClient(),
//	}
//	queues := sqs.NewFromConfig(cfg)
//
// An Endpoint is an http.Handler as well; another process reaches it through a
// server whose URL it has as AWS_ENDPOINT_URL.
//
// # Events
//
// EC2's state changes and spot warnings come into the queue of Options.Queue as
// EventBridge sends them; Events sends the others. Visibility time-outs,
// retention and long polls are in virtual time.
//
// A client that polls on the goroutine which lets time pass must not wait
// (WaitTimeSeconds 0): nothing would end the wait. For clients that poll on
// their own goroutines, Queue.Advance lets time pass: it stands still while they
// handle what they got.
//
// # Goroutines
//
// Clients may call from several goroutines at once. A World belongs to one:
// calls must not overlap with Clock.Advance or RunUntil, but for a receive that
// waits, if its client does nothing more until they return. Everything that happens later, such as an instance
// becoming running, happens there.
package awsapi
