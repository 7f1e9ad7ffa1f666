"""redis-py with its defaults, and with each protocol by name."""

import sys

import redis

port = int(sys.argv[1])
for number, options in enumerate([{}, {"protocol": 2}, {"protocol": 3}, {"decode_responses": True}]):
    client = redis.Redis(host="127.0.0.1", port=port, **options)
    assert client.ping() is True
    key = f"py{number}"
    throttle = ["CL.THROTTLE", key, 2, 1, 10]
    assert client.execute_command(*throttle) == [0, 3, 2, -1, 10]

    pipeline = client.pipeline(transaction=False)
    for _ in range(3):
        pipeline.execute_command(*throttle)
    assert [answer[:3] for answer in pipeline.execute()] == [[0, 3, 1], [0, 3, 0], [1, 3, 0]]

    # Unless it is told otherwise, a pipeline is a transaction.
    transaction = client.pipeline()
    for _ in range(4):
        transaction.execute_command("CL.THROTTLE", f"{key}-multi", 2, 1, 10)
    transaction.execute_command("TG.CHECK", "user", f"{key}-multi")
    *throttled, checked = transaction.execute()
    assert [answer[0] for answer in throttled] == [0, 0, 0, 1]
    assert checked[:3] == [0, 5, 4]

    transaction.execute_command("CL.THROTTLE", f"{key}-multi", 2, 0, 10)
    transaction.ping()
    error, pong = transaction.execute(raise_on_error=False)
    assert isinstance(error, redis.ResponseError) and pong is True

    transaction.execute_command("GET", key)
    try:
        transaction.execute()
    except redis.ResponseError as error:
        assert "unknown command" in str(error), error
    else:
        raise AssertionError("there is nothing to get")

    # What watches a key first, and then sends a transaction.
    def spend(pipe):
        pipe.multi()
        pipe.execute_command("CL.THROTTLE", f"{key}-watched", 2, 1, 10)

    assert client.transaction(spend, f"{key}-watched")[0][:3] == [0, 3, 2]

    try:
        client.execute_command("CL.THROTTLE", key, 2, 0, 10)
    except redis.ResponseError as error:
        assert "count" in str(error), error
    else:
        raise AssertionError("a count of zero is an error")

    text = (lambda it: it) if options.get("decode_responses") else str.encode
    limited, limit, remaining, retry_after, reset_after, rule, delay, ticket = client.execute_command(
        "TG.CHECK", "user", key
    )
    assert (limited, limit, remaining, retry_after) == (0, 5, 4, -1)
    assert (reset_after, rule, delay, ticket) == (720, text("per-user"), 0, None)
    assert client.info("server")["redis_version"] == "7.2.0"
    assert client.client_id() > 0
    client.close()
print("all is well")
