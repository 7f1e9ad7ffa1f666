-- What all scripts share: the memory that keys live in, and what is asked.
--
-- KEYS: the mark of the memory, then one key for each question.
-- ARGV: what all questions have in common, then the questions, one after the other.
--
-- Most calls ask the same of every key, and the key is known and nothing of it is lent. A call is
-- made for that: it reads no argument twice, fetches all keys at once, and makes the functions that
-- others need only after what is quick is done.

local floor, min, max, format = math.floor, math.min, math.max, string.format
local call, try = redis.call, redis.pcall

local BILLION = 1000000000
local MILLION = 1000000

-- The server's clock, in microseconds: it stands still while a script runs.
local clock = redis.call('TIME')
local NOW = clock[1] * MILLION + clock[2]

-- The memory. A server that was started again, or took over from another, or was emptied, may have
-- forgotten what was spent. Its process has another name then than the one that left the mark. The
-- mark says since when this memory lasts, and what is known of the one before: nothing was there
-- (lost is 0), some of it was kept, or all of it is gone.
--
-- Who asks tells when everything was lost, as far as they know: `now` if they have seen a mark where
-- there is none, a moment if the process has lost others, 0 if they know of nothing.
local process, known_loss = ARGV[1], ARGV[2]
local EPOCH, LOST, KEPT
do
    local mark = call('HMGET', KEYS[1], 'epoch', 'process', 'lost', 'kept')
    if mark[2] == process then
        EPOCH, LOST, KEPT = tonumber(mark[1]), tonumber(mark[3]), mark[4] == '1'
    else
        KEPT = mark[1] and true or false
        LOST = (KEPT or known_loss == 'now') and NOW or tonumber(known_loss)
        -- Another one even if the clock stands still, or runs backwards.
        EPOCH = max(NOW, (tonumber(mark[1] or 0) or 0) + 1)
        call('HSET', KEYS[1], 'epoch', EPOCH, 'process', process, 'lost', LOST,
            'kept', KEPT and 1 or 0)
    end
end

local EPOCH_TEXT = format('%d', EPOCH)

-- All answers are one text, a line for each. First stand the time, the memory, and when all before
-- it was lost.
local ANSWERS = { format('%d %d %d', NOW, EPOCH, KEPT and 0 or LOST) }

-- The time that a key is kept after it was last written, and what its limit reads like.
local ttl, limit_text = ARGV[3], ARGV[4]

-- The numbers of the limit begin after these, and the terms of lending; then come the questions. This
-- is the place of the last argument that was read.
local LIMIT = 9
local place

-- Answers begin with one of these, or are what was found under the key.
local RECORD, OVERTAKEN, FOREIGN, OTHER_WINDOW, FORGOTTEN = 0, 1, 2, 3, 4

-- A question begins with a word: the name of a node, nothing, or one of these. No node is called so.
local UNDO, FORGET = 'undo', 'forget'
