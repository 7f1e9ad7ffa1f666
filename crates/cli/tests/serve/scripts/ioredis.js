// ioredis with its defaults.
const assert = require("node:assert");
const Redis = require("ioredis");

async function main(port) {
    const client = new Redis(port, "127.0.0.1");
    assert.equal(await client.ping(), "PONG");
    const throttle = ["CL.THROTTLE", "io", "2", "1", "10"];
    assert.deepEqual(await client.call(...throttle), [0, 3, 2, -1, 10]);
    const pipeline = client.pipeline();
    for (let times = 0; times < 3; times += 1) {
        pipeline.call(...throttle);
    }
    const three = await pipeline.exec();
    const begins = three.map(([error, answer]) => [error, ...answer.slice(0, 3)]);
    assert.deepEqual(begins, [[null, 0, 3, 1], [null, 0, 3, 0], [null, 1, 3, 0]]);
    await assert.rejects(client.call("CL.THROTTLE", "io", "2", "0", "10"), /count/);
    const check = await client.call("TG.CHECK", "user", "io");
    assert.deepEqual(check, [0, 5, 4, -1, 720, "per-user", 0, null]);
    const multi = client.multi();
    for (let times = 0; times < 4; times += 1) {
        multi.call("CL.THROTTLE", "io-multi", "2", "1", "10");
    }
    const all = await multi.call("TG.CHECK", "user", "io").exec();
    assert.deepEqual(all.map(([error, answer]) => [error, answer[0]]), [0, 0, 0, 1, 0].map((it) => [null, it]));
    await assert.rejects(client.multi().call("GET", "io").exec(), /EXECABORT/);
    // One command after the other, each with its answer.
    await client.multi({ pipeline: false });
    assert.equal(await client.call("CL.THROTTLE", "io-slow", "2", "1", "10"), "QUEUED");
    assert.deepEqual((await client.exec())[0][1].slice(0, 3), [0, 3, 2]);
    await client.quit();
    console.log("all is well");
}

main(process.argv[2]).catch((error) => {
    console.error(error);
    process.exit(1);
});
