-- The budget of a bucket: the rest of it, with leases.

local tokens, interval_s, interval_g = tonumber(ARGV[LIMIT + 2]), tonumber(ARGV[LIMIT + 3]), tonumber(ARGV[LIMIT + 4])

local bucket = { name = 'bucket', fields = { 'full', 'part' } }

function bucket.to_text(account)
    return struct.pack(NUMBERS, account.full, account.part)
end

-- Nothing if it is no such text.
function bucket.of_text(text)
    if #text ~= 10 then return nil end
    local full, part = struct.unpack(NUMBERS, text)
    return part < BASE and { full, part } or nil
end

-- The span that the cost takes to come back. One below zero if it is more than the bucket holds.
function bucket.read(ask)
    ask.span_s, ask.span_g = number(), number()
end

function bucket.open(account)
    if LOST == 0 then return end
    account.lost = LOST
    -- Empty when the last lease of the former memory is over.
    local s, ns = split(LOST)
    s, ns = add(s, ns, longest_s, longest_ns, BILLION)
    local g = ns * per_nano
    s, g = add(s, g, capacity_s, capacity_g, BASE)
    account.full, account.part = later(account.full, account.part, s, g)
end

function bucket.settle(account)
    account.now_g = account.ns * per_nano
    return true
end

function bucket.state(account)
    return account.full, account.part
end

function bucket.hold_down(account, s, ns)
    if account.escrow <= 0 then return end
    local held_s, held_g = times(min(account.escrow, tokens), interval_s, interval_g, BASE)
    held_s, held_g = add(s, ns * per_nano, held_s, held_g, BASE)
    account.full, account.part = later(account.full, account.part, held_s, held_g)
end

-- What the bucket is full at, and what it would be full at if it were empty.
local function turn_and_end(account)
    local turn_s, turn_g = later(account.full, account.part, account.s, account.now_g)
    return turn_s, turn_g, add(account.s, account.now_g, capacity_s, capacity_g, BASE)
end

function bucket.spend(account, ask)
    if ask.cost == 0 or ask.span_s < 0 then return false end
    local turn_s, turn_g, end_s, end_g = turn_and_end(account)
    local full_s, full_g = add(turn_s, turn_g, ask.span_s, ask.span_g, BASE)
    if before(end_s, end_g, full_s, full_g) then return false end
    account.full, account.part = full_s, full_g
    return true
end

function bucket.left(account)
    local turn_s, turn_g, end_s, end_g = turn_and_end(account)
    local room_s, room_g = subtract(end_s, end_g, turn_s, turn_g, BASE)
    return (quotient(room_s, room_g, interval_s, interval_g, BASE))
end

function bucket.left_ahead(account, ahead)
    local turn_s, turn_g, end_s, end_g = turn_and_end(account)
    local ahead_s, ahead_g = times(min(ahead, tokens), interval_s, interval_g, BASE)
    end_s, end_g = add(end_s, end_g, ahead_s, ahead_g, BASE)
    local room_s, room_g = subtract(end_s, end_g, turn_s, turn_g, BASE)
    -- A bucket that is full with what is lent lets nothing come in.
    return min(quotient(room_s, room_g, interval_s, interval_g, BASE),
        max(tokens - account.escrow, 0))
end

function bucket.missing(account)
    local end_s, end_g = add(account.s, account.now_g, capacity_s, capacity_g, BASE)
    local s, g = subtract(account.full, account.part, end_s, end_g, BASE)
    return s * BILLION + math.ceil(g / per_nano)
end

function bucket.time_of(count)
    local s, g = times(count, interval_s, interval_g, BASE)
    return s * BILLION + math.ceil(g / per_nano)
end

function bucket.tokens_of(ns)
    local s = floor(ns / BILLION)
    local count, is_exact =
        quotient(s, (ns - s * BILLION) * per_nano, interval_s, interval_g, BASE)
    return is_exact and count or count + 1
end

function bucket.take(account, count)
    if count == 0 then return end
    local turn_s, turn_g = turn_and_end(account)
    local span_s, span_g = times(count, interval_s, interval_g, BASE)
    account.full, account.part = add(turn_s, turn_g, span_s, span_g, BASE)
end

function bucket.give(account, count)
    local span_s, span_g = times(count, interval_s, interval_g, BASE)
    account.full, account.part = subtract(account.full, account.part, span_s, span_g, BASE)
end

function bucket.carry(account, ask)
    local span_s, span_g = times(min(ask.carried, tokens), interval_s, interval_g, BASE)
    local full_s, full_g = add(ask.since_s, ask.since_ns * per_nano, span_s, span_g, BASE)
    -- What has come back since is not worth a key.
    if not before(account.s, account.now_g, full_s, full_g) then return end
    account.full, account.part = later(account.full, account.part, full_s, full_g)
end

-- Less the time since, which has given back as much.
function bucket.undo(account, ask)
    if ask.span_s < 0 then return end
    local then_g = ask.then_ns * per_nano
    local passed_s, passed_g = subtract(account.s, account.now_g, ask.then_s, then_g, BASE)
    local left_s, left_g = subtract(ask.span_s, ask.span_g, passed_s, passed_g, BASE)
    account.full, account.part = subtract(account.full, account.part, left_s, left_g, BASE)
end

function bucket.window_end() end

return exchange_of(bucket)
