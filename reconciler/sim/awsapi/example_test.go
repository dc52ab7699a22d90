package awsapi_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// A client of the SDK is attached by its HTTP client alone.
func ExampleEndpoint_HTTPClient() {
	data, err := catalog.Embedded("ap-northeast-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	world := sim.NewWorld(sim.Options{Start: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)})
	endpoint, err := awsapi.New(world, awsapi.Options{Cluster: "demo", Catalog: data})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := sqs.NewFromConfig(aws.Config{
		Region:      endpoint.Region(),
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient:  endpoint.HTTPClient(),
	})
	endpoint.Events().Rebalance("i-0123456789abcdef0")
	out, err := client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(endpoint.Queue().URL())})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*out.Messages[0].Body)
	// Output: {"version":"0","id":"f0053572-b227-4e57-8b51-8f602208586a","detail-type":"EC2 Instance Rebalance Recommendation","source":"aws.ec2","account":"111122223333","time":"2026-01-05T09:00:00Z","region":"ap-northeast-2","resources":["arn:aws:ec2:ap-northeast-2:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0"}}
}
