-- join and settle: the claim is queued here. They differ in the ticket it gets.
--
-- ARGV  1 id  2 ticket  3 ttl  4 how long the state is kept  5 guard  6 what the state of one claim ends
--       with, after the expiry: " <flags> <owner>"; 7 what stands before the expiry, if not "+1 1 ":
--       "+<capacity> <weight> "  8 flags: 2 list, 4 settle, 8 a settle that is not patient
--@ read
-- The usual case: nobody has the name, and the ticket is above the fence. The
-- fence is compared as a text, so it must have as many digits as the ticket.
local below = 'R' .. A[2]
if not K[6] and (state == '' or #state > #below and state < below and state > 'R' and string.byte(state, #below + 1) == 32)
  and not A[8] and A[2] ~= '0' and not marker.err then
  local inc, born = string.match(marker, '^(%d+) (%d+) ')
  local micros, guard = clock[2] + 0, A[5] + 0
  local now = clock[1] * 1000 + (micros - micros % 1000) / 1000
  if inc and born + guard <= now and A[2] - now * 1000 - guard * 500 <= 0
    and (A[7] and string.sub(A[7], 1, 3) ~= '+1 ' or call('SET', K[1], A[1], 'PX', A[3], 'NX')) then
    local x = now + A[3]
    local ms = x % 1000
    -- Two integers are written in half the time that one number takes.
    call('SET', K[2], 'S' .. A[2] .. ' ' .. A[1] .. (A[7] or '+1 1 ') .. string.format('%d%03d', (x - ms) / 1000, ms) .. A[6], 'PX', A[4])
    return clock[1] .. ' ' .. clock[2] .. ' ' .. inc .. ' ' .. A[2] .. ' 9'
  end
end
local id, wanted, px, keep, guard, flags = A[1], A[2], A[3], A[4], A[5], A[8] or '0'
local capacity, weight = string.match(A[7] or '+1 1 ', '^%+(%d+) (%d+) $')
local asks, owner = string.match(A[6], '^ (%d) (.*)$')
asks = asks == '3' and '1' or '0' -- a number would be written anew
--@ open
local settle, list = flags % 8 >= 4, flags % 4 >= 2
local patient = settle and flags + 0 < 8
if recovering > 0 and not settle then return { at + 3, tonumber(inc), recovering } end
if settle then
  --@ full
  -- A patient settle drops no claim that has the vote, or that does not fit.
  if patient and cid and (cf + 0 > 1 or limit and cw - limit > 0) then live = true end
end

if recovering > 0 and fence and (not cid or cid == id) then
  -- Taken back, or alive, without a vote: see below.
  if cid and ct + 0 == wanted + 0 or not cid and fence == '0' and wanted + 0 > 0 and wanted - now * 1000 - guard * 500 <= 0 then
    if not cid then cap, ct, cw, cf, co = capacity, wanted, weight, asks, owner end
    call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf .. ' ' .. cap .. ' ' .. id .. ' ' .. ct .. ' ' .. cw .. ' ' .. now + ttl .. ' ' .. cf .. ' ' .. co, 'PX', keep)
  end
  return { at + 3, tonumber(inc), recovering }
end
-- Clients of one name with different capacities would each count by their own:
-- the later one is refused. After a Resize the recorded number counts, whatever
-- clients were made with.
local clash = live and cap ~= capacity and not limit
if clash and recovering <= 0 and cf + 0 >= 2 and cx - keep <= now then return { at + 4, tonumber(inc), tonumber(cap) } end
if recovering <= 0 and fence and not clash and (not live or cid == id and not (taken and wanted ~= ct)) and not (limit and (live and cf + 0 < 2 and cw or weight) - limit > 0) then
  -- Alone, hence first: the vote, or another client's redlock key, is all that
  -- there is to decide. No sorted set is made, which would cost three times as
  -- much.
  local T, F = tonumber(wanted), tonumber(fence)
  local says, ticket = 1, T
  if live then
    -- The fence is its own ticket, so whatever is above that is free.
    if not settle or T < tonumber(ct) then ticket = tonumber(ct) end
    if settle and tonumber(weight) < tonumber(cw) then cw = weight end
  else
    cw, co, cf = weight, owner, asks
    if T <= F and not (settle and T == F and fenceOf == id) then
      ticket = F + 1
      ticket = ticket + (tonumber(string.sub(id, 31), 16) - ticket) % 64
    end
  end
  -- Above the fence, and too far ahead of this clock: nothing is stored.
  local far = ticket - now * 1000 - guard * 500
  if far > 0 and ticket > F then return { at + 6, tonumber(inc), math.ceil(far / 1000) } end
  local hint = 0
  if classic and not call('SET', K[1], id, 'PX', px, 'NX') then
    local plain
    --@ plain
    -- The key of a claim of ours whose lease has just ended counts as free.
    if plain == id or plain == cid then
      call('SET', K[1], id, 'PX', px)
    else
      says, hint = 4, call('PTTL', K[1])
      hint = hint < 0 and 0 or math.max(1, hint)
    end
  end
  local t = ticket == T and wanted or format('%.0f', ticket)
  if ticket > F then fence, fenceOf = t, id end
  -- Lua writes 14 digits of a number: enough for a time, not for a ticket.
  local whose = fence == t and fenceOf == id and '+' .. capacity .. ' ' or ' ' .. capacity .. ' ' .. id .. ' ' .. t .. ' '
  call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf .. whose .. cw .. ' ' .. now + ttl
    .. (cf % 2 == 1 and (says == 1 and ' 3 ' or ' 1 ') or says == 1 and ' 2 ' or ' 0 ') .. co, 'PX', keep)
  says = says > 1 and format('4 %.0f', hint) or list and '25' or '9'
  if limit then return { at + 1, tonumber(inc), ticket, says + 32, 0, 0, 0, tonumber(limit), tonumber(since), list and 0 or nil, list and 0 or nil } end
  return clock[1] .. ' ' .. clock[2] .. ' ' .. inc .. ' ' .. t .. ' ' .. says
end
-- A second claim, and the fence of a name that has been served is its own:
-- nothing is taken back.
if recovering > 0 and fence and fence ~= '0' then return { at + 3, tonumber(inc), recovering } end
--@ queue
--@ advance

if recovering > 0 then
  -- Within the guard time a claim that has settled elsewhere is taken back at
  -- its ticket, without a vote. The fence is 0 until the node serves the name,
  -- so no view that a client still counts lacks the claim.
  local t, w, _, f, o = match(call('HGET', K[4], id) or '', claim)
  local new = not t and F == '0' and wanted + 0 > 0 and (limit or C == capacity) and not call('ZRANGEBYSCORE', K[3], wanted, wanted)[1]
    and wanted - now * 1000 - guard * 500 <= 0
  if new then
    t, w, f, o = wanted, weight, asks, owner
    unvoted = unvoted + 1
    call('ZADD', K[3], t, id)
  end
  if t and t + 0 == wanted + 0 then
    local x = now + ttl
    if x < soon + 0 then soon = x .. '' end
    if x > late + 0 then late = x .. '' end
    changed = true
    call('HSET', K[4], id, t .. ' ' .. w .. ' ' .. x .. ' ' .. f .. ' ' .. o)
  end
  --@ save
  return { at + 3, tonumber(inc), recovering }
end

clash = C ~= capacity and voted + unvoted > 0 and not limit
-- Invariant: a claim that is refused leaves the queue as it was. Else a join
-- that fails would move the fence, and a client that tries again and again
-- would push all tickets ahead of the clock.
local waiting = unvoted
local t, w, _, f, o = match(not clash and call('HGET', K[4], id) or '', claim)
-- The ticket that the claim is given, false if it keeps the one it has.
local to, far = false, 0
if not clash then
  local T, above = wanted + 0, false
  if T <= F + 0 then
    -- The lowest ticket above the fence that has the claim's residue.
    above = F + 1
    above = format('%.0f', above + (tonumber(string.sub(id, 31), 16) - above) % 64)
  end
  if not t then
    to = wanted
    -- Only the claim that was given the ticket at the fence gets it back:
    -- another may have held it and left.
    if above and not (settle and to == F and Fo == id) then to = above end
  elseif settle and T > t + 0 then
    -- At the fence, too: the claim that was given it may have left, but can
    -- come back to it.
    to = wanted
    if to == F or above and call('ZRANGEBYSCORE', K[3], to, to)[1] then to = above end
  end
  if to and to - F > 0 then far = to - now * 1000 - guard * 500 end
end
if not clash and far <= 0 then
  if t and settle and weight - w < 0 then
    -- A holder gives back a part: there may be room for others.
    if t - bound <= 0 then sum = format('%.0f', sum - w + weight) end
    w, stale = weight, '1'
  end
  if not t then
    -- Without a vote: advance.lua gives it, in the order of tickets, so no
    -- claim is passed over.
    C, t, w, f, o = limit or capacity, to, weight, asks, owner
    unvoted = unvoted + 1
  elseif to then
    if C == solo and plain == id then
      call('DEL', K[1])
      plain = false
    end
    -- It needs a new vote, unless it stays among the claims with votes.
    if t - bound <= 0 and (to - bound > 0 or t == bound) then
      --@ withdraw
    end
    t = to
  end
  if to then
    call('ZADD', K[3], t, id)
    if t - F > 0 then F, Fo = t, id end
    stale = '1'
  end
  --@ keep
  --@ advance
  -- The first to wait: the holders may want to make room. A later one tells them nothing new.
  if mine and waiting == 0 and notify + 0 > 0 then called = '-inf' end
end
--@ rest
--@ save
if clash then return { at + 4, tonumber(inc), tonumber(C) } end
if far > 0 then return { at + 6, tonumber(inc), math.ceil(far / 1000) } end
local from = list and '-inf'
--@ answer
