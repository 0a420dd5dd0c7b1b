"""A queue with its consumer, whose inputs the test's configuration changes."""

import pulumi
import pulumi_aws as aws

config = pulumi.Config()
queue = aws.sqs.Queue(
    "queue", name=config.require("queueName"), visibility_timeout_seconds=config.get_int("visibility") or 60
)
role = aws.iam.Role(
    "role",
    assume_role_policy=pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": []}),
)
body = f"def handler(event, context):\n    return {config.get('answer') or '1'}\n"
function = aws.lambda_.Function(
    "function",
    role=role.arn,
    runtime="python3.11",
    handler="handler.handler",
    timeout=10,
    code=pulumi.AssetArchive({"handler.py": pulumi.StringAsset(body)}),
)
aws.lambda_.EventSourceMapping("mapping", event_source_arn=queue.arn, function_name=function.name, batch_size=1)
if config.get_bool("unknownInput"):
    aws.sqs.Queue("odd", name_prefix="odd-")
if config.get_bool("unknownType"):
    aws.ecs.Cluster("cluster")
if config.get_bool("secretVersion"):
    aws.secretsmanager.SecretVersion("version", secret_id="rows", secret_string="hush")
pulumi.export("queueUrl", queue.url)
pulumi.export("functionName", function.name)
