-- The budget of permits.

local permits = { fields = {}, reusable = true }

-- Who holds what was lent by a former memory.
local UNKNOWN = 'lease unknown'

-- All of them may be out, until the leases of the former memory are over.
function permits.open(account)
    if LOST == 0 then return end
    account.lost = LOST
    local s, ns = split(LOST)
    s, ns = add(s, ns, hold_s, hold_ns, BILLION)
    local unknown = new_lease(0, 0)
    unknown[GRANTED], unknown[UNTIL_S], unknown[UNTIL_NS] = most, s, ns
    unknown[FORGOTTEN_S], unknown[FORGOTTEN_NS] = s, ns
    account.escrow, account.leases, account.due = most, 1, next_of(unknown)
    keep_lease(account, UNKNOWN, unknown)
end

-- Which may be more than whoever asked first knew of.
function permits.advance(account)
    if LOST == 0 then return end
    local s, ns = split(LOST)
    s, ns = add(s, ns, hold_s, hold_ns, BILLION)
    if not before(account.s, account.ns, s, ns) then return end
    local unknown = lease_of(account, UNKNOWN)
    if not unknown or unknown[OVER] == 1 then return end
    local more = max(most - out(unknown), 0)
    unknown[GRANTED], account.escrow = unknown[GRANTED] + more, account.escrow + more
    keep_lease(account, UNKNOWN, unknown)
end

function permits.settle()
    return true
end

function permits.state()
    return 0, 0
end

function permits.hold_down() end

function permits.left(account)
    return max(most - account.escrow, 0)
end

function permits.take() end

function permits.give() end

function permits.undo() end

function permits.window_end() end

return exchange_of(permits)
