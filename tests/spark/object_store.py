"""An object store on loopback that speaks S3, until its standard input ends: moto's server.

It handles one request after the other: moto looks for an object and puts one in two steps, so that of two
conditional puts at once both could succeed, and a commit be lost that way.

object_store.py

It prints its port, and the key and the secret of a user with all rights; others are refused. The command
`age N` makes all objects N days older, and is answered with `aged`.
"""

import json
import sys
import threading
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import boto3
from moto import settings
from moto.backends import get_backend
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

BUCKET = "lake"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def main() -> None:
    """Serve requests."""
    application = DomainDispatcherApplication(create_backend_app)
    one_at_a_time = threading.Lock()

    def answer(environment: Any, start_response: Any) -> Iterable[bytes]:
        with one_at_a_time:
            return list(application(environment, start_response))

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=MotoRequestHandler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    port = server.server_port
    own = {
        "endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1",
        "aws_access_key_id": "root", "aws_secret_access_key": "root",
    }  # fmt: skip
    users = boto3.client("iam", **own)
    users.create_user(UserName="lakes")
    users.put_user_policy(UserName="lakes", PolicyName="all", PolicyDocument=json.dumps(EVERYTHING))
    key = users.create_access_key(UserName="lakes")["AccessKey"]
    boto3.client("s3", **own).create_bucket(Bucket=BUCKET)
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    print(port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
    for line in sys.stdin:
        _, days = line.split()
        for account in get_backend("s3").values():
            for bucket in account["aws"].buckets.values():
                for one in bucket.keys.values():
                    one.last_modified -= timedelta(days=int(days))
        print("aged", flush=True)
    server.shutdown()
    serving.join()


if __name__ == "__main__":
    main()
