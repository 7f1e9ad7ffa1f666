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
-- (lost is 0), all of it is gone (kept is 0), or it was kept but for its last moments. What is kept goes
-- back to the time at which everything was lost before, or to the beginning (1).
--
-- Whatever a server knows, after a restart or as a replica, is all that was written up to some moment. The mark
-- is written once a second at least while anybody asks (beat), so that moment is not much later than the beat of
-- the mark that it finds. From then on the mark says `until` when what was taken over reaches: the epoch that
-- took over, and that moment, of the last few times. It says `since` which epoch nothing was lost but last
-- moments, and whether what was before that counts as lost (noted), or whoever was the first to ask knew of
-- nothing.
--
-- Who asks tells what they have seen: the epoch of the mark that they were answered with last, when, and since
-- which epoch nothing was lost then (seen). If a mark is missing that they have seen, or it is since another epoch
-- and nobody has noted a loss after that, or what is kept does not reach to where they were answered, or another
-- had taken over whose memory this process does not have, everything counts as lost: nobody knows what was spent
-- in between. Otherwise they tell when the process that they ask has lost all it had, the slot among it
-- (lost), or another that had the slot then (elsewhere), or that they know of nothing (none). In a Cluster a second
-- word says what has become of the process that a mark names: that third word has given the slot away in good
-- order (given), or it has not (gone), or it is to be named in place of an answer (ask), with the rest of what
-- tells marks apart. A slot that was given away has lost nothing, and its mark changes hands. It says how often it
-- was `moved`: whatever was lost before, the process that has it now did not lose it.
--
-- The mark is a text, so that it comes with all others.
local MARK = '^process (%S+) epoch (%d+) lost (%d+) kept (%d+) moved (%d+)' ..
    ' beat (%d+) until (%S+) since (%d+) noted ([01])$'
local process, known = ARGV[1], ARGV[2]

-- The time between two beats; and how much of the end may be missing of what is kept, which is that, and what
-- is not on a disk yet that is written to once a second.
local BEAT, MISSING = MILLION, 3 * MILLION

-- So many takeovers are remembered. Who has seen nothing since them tells nothing.
local TAKEOVERS = 4

-- How many milliseconds the mark is kept after it was last written, which are a thousand days: longer than any key
-- of which it tells something. A bucket may take 400 days to fill, and is kept for twice that.
local MARK_KEPT = 86400000000

-- What is asked of whom: the same of every key, all of which are different (all); the same of every
-- key (same); something like it of each (every); or anything of each.
local asked = ARGV[3]

-- The texts under all keys, if they are fetched at once.
local FOUND = asked == 'all' and call('MGET', unpack(KEYS))

local EPOCH, LOST, KEPT, ROOT, EPOCH_TEXT, LOST_TEXT
-- How often the slot was moved in this memory, in digits.
local moves = '0'
do
    local mark = FOUND and FOUND[1] or try('GET', KEYS[1])
    local of, kept, beat, reaches, root, noted
    if mark then
        local text = type(mark) == 'string' and mark or ''
        of, EPOCH_TEXT, LOST_TEXT, kept, moves, beat, reaches, root, noted = string.match(text, MARK)
        if not of then
            local remedy = ' is not ours: rename it, or use another database'
            return redis.error_reply('ERR ' .. KEYS[1] .. remedy)
        end
    end
    -- Most of those who ask were answered in this memory before: "seen", and its number.
    local is_usual = of == process and string.sub(known, 6, 5 + #EPOCH_TEXT) == EPOCH_TEXT
    if not is_usual or NOW - beat >= BEAT then
        local what, first, second, seen_since, verdict, former =
            string.match(known, '^(%a+) (%d+) (%d+) (%d+) ?(%a*) ?(%S*)$')
        local is_another = of ~= process
        if of and is_another and verdict ~= '' and former ~= of then
            return 'former ' .. of .. ' ' .. EPOCH_TEXT .. ' ' .. moves
        end
        local is_given = of and is_another and verdict == 'given'
        if is_given then moves = format('%d', moves + 1) end
        local has_taken_over = is_another and not is_given
        local seen = what == 'seen' and tonumber(first) or 0
        -- Who has seen a later epoch knows that another had taken over.
        local is_later = of and seen > tonumber(EPOCH_TEXT)
        local is_missing = not of and what == 'seen'
        if of and what == 'seen' then
            local reach, takeovers = beat, 0
            local is_ours = seen == tonumber(root)
            for epoch, kept_until in string.gmatch(reaches, '(%d+):(%d+)') do
                is_ours = is_ours or seen == tonumber(epoch)
                if seen < tonumber(epoch) then
                    if takeovers == 0 then reach = kept_until end
                    takeovers = takeovers + 1
                end
            end
            -- Of a memory that nobody has taken over all is missing since it began.
            if not is_ours then reach = min(tonumber(reach), seen) end
            seen_since = tonumber(seen_since)
            if seen_since == tonumber(root) then
                is_missing = takeovers < TAKEOVERS and second - reach > MISSING
                    or is_later and not has_taken_over
            else
                is_missing = noted == '0' or seen_since > tonumber(root)
                    or is_later and not has_taken_over
            end
        end
        -- Whoever was the first to ask did not know what this process has lost.
        if of == process and what == 'lost' and noted == '0' and kept == '0' and moves == '0' then
            is_missing = true
        end
        if has_taken_over or is_missing then
            local lost, kept_since, at = tonumber(LOST_TEXT), tonumber(kept), NOW
            -- Another one even if the clock stands still, or runs backwards.
            EPOCH_TEXT = format('%d', max(NOW, (tonumber(EPOCH_TEXT) or 0) + 1, seen + 1))
            if has_taken_over then moves = '0' end
            if of and not is_missing and what ~= 'lost' then
                kept = lost == 0 and '1' or format('%d', kept_since == 0 and lost or kept_since)
                reaches = string.gsub(reaches, '^%-$', '')
                if select(2, string.gsub(reaches, ':', '')) >= TAKEOVERS then
                    reaches = string.gsub(reaches, '^%d+:%d+,', '')
                end
                reaches = reaches .. (reaches == '' and '' or ',') .. EPOCH_TEXT .. ':' .. beat
            else
                -- Who asks may have a clock that is ahead.
                if not of and what ~= 'seen' then at = min(NOW, tonumber(first)) end
                if what == 'elsewhere' then moves = '1' end
                kept, reaches, root = '0', '-', EPOCH_TEXT
                noted = (of or what ~= 'none') and '1' or '0'
            end
            LOST_TEXT, beat = format('%d', at), NOW
        end
        if is_another or is_missing or NOW - beat >= BEAT then
            call('SET', KEYS[1], format('process %s epoch %s lost %s kept %s moved %s ' ..
                'beat %d until %s since %s noted %s', process, EPOCH_TEXT, LOST_TEXT, kept, moves,
                max(NOW, beat), reaches, root, noted), 'PX', MARK_KEPT)
        end
    end
    EPOCH, LOST, KEPT, ROOT = tonumber(EPOCH_TEXT), tonumber(LOST_TEXT), tonumber(kept), tonumber(root)
end

-- All answers are one text, a line for each. First stand the time, the memory, when all before it was lost
-- by this process, how often the slot was moved, and since which epoch nothing was lost.
local ANSWERS = { clock[1] .. ' ' .. clock[2] .. ' ' .. EPOCH_TEXT .. ' ' ..
    ((KEPT > 0 or moves ~= '0') and '0' or LOST_TEXT) .. ' ' .. moves .. ' ' .. format('%d', ROOT) }

-- The time that a key is kept after it was last written, what its limit reads like, and the terms of
-- lending.
local ttl, limit_text, terms = ARGV[4], ARGV[5], ARGV[6]

-- A key that is kept for so long has its whole budget back by then, whatever was spent of it. So it is with
-- what was lost: after that time it is as if nothing had been.
if LOST + ttl * 1000 <= NOW then LOST = 0 end

-- The numbers of the limit begin after these; then come the questions. This is the place of the last
-- argument that was read.
local LIMIT = 6
local place

-- Answers begin with one of these, or are what was found under the key.
local RECORD, OVERTAKEN, FOREIGN, OTHER_WINDOW, FORGOTTEN = 0, 1, 2, 3, 4

-- What looks like ours and makes no sense is foreign for this reason.
local NO_NUMBER, GARBLED = 'no number', '2 no number'

-- A question begins with a word: the name of a node, nothing, or one of these. No node is called so.
local UNDO, FORGET = 'undo', 'forget'

-- Before it may stand what a key whose limit has changed brings along: this word, what it had spent, how
-- many microseconds ago the limit changed, and whether that counts also for a key that is known (1).
local CARRIED = 'carried'
