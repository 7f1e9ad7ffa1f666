// node-redis with its defaults, and with RESP3.
const assert = require("node:assert");
const { createClient } = require("redis");

async function main(port) {
    for (const [number, options] of [{}, { RESP: 2 }, { RESP: 3 }].entries()) {
        const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options });
        await client.connect();
        assert.equal(await client.ping(), "PONG");
        const key = `node${number}`;
        const throttle = ["CL.THROTTLE", key, "2", "1", "10"];
        assert.deepEqual(await client.sendCommand(throttle), [0, 3, 2, -1, 10]);
        // Commands of one turn are sent together.
        const three = await Promise.all([1, 2, 3].map(() => client.sendCommand(throttle)));
        assert.deepEqual(three.map((answer) => answer.slice(0, 3)), [[0, 3, 1], [0, 3, 0], [1, 3, 0]]);
        await assert.rejects(client.sendCommand(["CL.THROTTLE", key, "2", "0", "10"]), /count/);
        const check = await client.sendCommand(["TG.CHECK", "user", key]);
        assert.deepEqual(check, [0, 5, 4, -1, 720, "per-user", 0, null]);
        const multi = client.multi();
        for (let times = 0; times < 4; times += 1) {
            multi.addCommand(["CL.THROTTLE", `${key}-multi`, "2", "1", "10"]);
        }
        const all = await multi.addCommand(["TG.CHECK", "user", key]).exec();
        assert.deepEqual(all.map((answer) => answer[0]), [0, 0, 0, 1, 0]);
        await assert.rejects(client.multi().addCommand(["GET", key]).exec());
        await client.close();
    }
    console.log("all is well");
}

main(process.argv[2]).catch((error) => {
    console.error(error);
    process.exit(1);
});
