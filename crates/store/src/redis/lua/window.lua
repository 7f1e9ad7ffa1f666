-- The budget of a fixed window: the rest of it, with leases.

local window = { name = 'window', fields = { 'end', 'rest', 'count' } }

function window.to_text(account)
    return digits_of(account, window.fields)
end

function window.of_text(text)
    return of_digits(text, #window.fields)
end

function window.read(ask)
    ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns, ask.end_s, ask.end_ns =
        number(), number(), number(), number(), number(), number()
end

-- A window that was lost is taken for spent.
function window.open(account, former)
    account.lost = window_loss(is_short, former)
end

function window.settle(account, ask)
    local begin_s, begin_ns, end_s, end_ns = ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns
    if before(account.s, account.ns, begin_s, begin_ns) then return false end
    if not before(account.s, account.ns, end_s, end_ns) then
        begin_s, begin_ns, end_s, end_ns = end_s, end_ns, ask.end_s, ask.end_ns
        if not before(account.s, account.ns, end_s, end_ns) then return false end
    end
    -- Nodes may disagree about where a window ends, if they know a time zone by other rules. One that has begun goes
    -- on until it ends, or each of them would begin it anew for all others.
    local goes_on = before(account.s, account.ns, account['end'], account.rest)
        and not before(ask.end_s, ask.end_ns, account['end'], account.rest)
    if not goes_on then
        account['end'], account.rest, account.count = end_s, end_ns, 0
    end
    account.begin_s, account.begin_ns = begin_s, begin_ns
    if account.lost then
        local s, ns = split(account.lost)
        if not before(s, ns, begin_s, begin_ns) then account.count = limit end
    end
    return true
end

function window.state(account)
    return account.count, 0
end

function window.hold_down() end

function window.left(account)
    return max(limit - account.count, 0)
end

function window.spend(account, ask)
    if ask.cost == 0 or ask.cost > window.left(account) then return false end
    account.count = account.count + ask.cost
    return true
end

function window.take(account, count)
    account.count = account.count + count
end

function window.give(account, count)
    account.count = max(account.count - count, 0)
end

function window.carry(account, ask)
    if before(ask.since_s, ask.since_ns, account.begin_s, account.begin_ns) then return end
    account.count = max(account.count, min(ask.carried, limit))
end

-- Only in the window in which it was spent.
function window.undo(account, ask)
    if ask.undone > limit or before(ask.then_s, ask.then_ns, account.begin_s, account.begin_ns)
        or not before(ask.then_s, ask.then_ns, account['end'], account.rest) then
        return
    end
    window.give(account, ask.undone)
end

function window.window_end(account)
    return account['end'], account.rest
end

return exchange_of(window)
