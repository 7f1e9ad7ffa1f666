-- The budget of a sliding window.

local sliding = {
    name = 'sliding', fields = { 'end', 'rest', 'last', 'this' },
}

function sliding.to_text(account)
    return digits_of(account, sliding.fields)
end

function sliding.of_text(text)
    return of_digits(text, #sliding.fields)
end

function sliding.read(ask)
    ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns, ask.end_s, ask.end_ns =
        number(), number(), number(), number(), number(), number()
end

local function rounded(count)
    return math.ceil(count / rounding) * rounding
end

-- How much of the last window counts.
local function weigh(account)
    local left_s, left_ns = account['end'], account.rest
    left_s, left_ns = subtract(left_s, left_ns, account.s, account.ns, BILLION)
    left_s, left_ns = times(account.last, left_s, left_ns, BILLION)
    local counts, is_exact = quotient(left_s, left_ns, length_s, length_ns, BILLION)
    account.counts = is_exact and counts or counts + 1
end

-- As with a fixed window.
function sliding.open(account, former)
    account.lost = window_loss(is_short, former)
end

function sliding.settle(account, ask)
    local begin_s, begin_ns, end_s, end_ns = ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns
    if before(account.s, account.ns, begin_s, begin_ns) then return false end
    if not before(account.s, account.ns, end_s, end_ns) then
        begin_s, begin_ns, end_s, end_ns = end_s, end_ns, ask.end_s, ask.end_ns
        if not before(account.s, account.ns, end_s, end_ns) then return false end
    end
    if account['end'] ~= end_s or account.rest ~= end_ns then
        local is_last = account['end'] == begin_s and account.rest == begin_ns
        account.last = is_last and rounded(account.this) or 0
        account['end'], account.rest, account.this = end_s, end_ns, 0
    end
    account.begin_s, account.begin_ns = begin_s, begin_ns
    if account.lost then
        local s, ns = split(account.lost)
        if not before(s, ns, begin_s, begin_ns) then
            account.last, account.this = 0, limit
        else
            s, ns = add(s, ns, length_s, length_ns, BILLION)
            if not before(s, ns, begin_s, begin_ns) then account.last = rounded(limit) end
        end
    end
    -- Never more, except if somebody else wrote it.
    account.last = min(account.last, rounded(limit))
    weigh(account)
    return true
end

function sliding.state(account)
    return account.last, account.this
end

function sliding.hold_down() end

function sliding.left(account)
    return max(limit - account.this - account.counts, 0)
end

function sliding.spend(account, ask)
    if ask.cost == 0 or ask.cost > limit - account.this - account.counts then return false end
    account.this = account.this + ask.cost
    return true
end

function sliding.take(account, count)
    account.this = account.this + count
end

function sliding.give(account, count)
    account.this = max(account.this - count, 0)
end

-- In this window, or the last one.
function sliding.carry(account, ask)
    local spent = min(ask.carried, limit)
    if not before(ask.since_s, ask.since_ns, account.begin_s, account.begin_ns) then
        account.this = max(account.this, spent)
        return
    end
    local s, ns = add(ask.since_s, ask.since_ns, length_s, length_ns, BILLION)
    if before(s, ns, account.begin_s, account.begin_ns) then return end
    account.last = max(account.last, rounded(spent))
    weigh(account)
end

-- Only in the window in which it was spent.
function sliding.undo(account, ask)
    if ask.undone > limit or before(ask.then_s, ask.then_ns, account.begin_s, account.begin_ns)
        or not before(ask.then_s, ask.then_ns, account['end'], account.rest) then
        return
    end
    sliding.give(account, ask.undone)
end

function sliding.window_end(account)
    return account['end'], account.rest
end

return exchange_of(sliding)
