-- record: what this node keeps of a name beside its claims. The queue is only
-- looked at: a claim whose lease has ended counts as gone, dropped or not.
--
-- KEYS  1 record  2 watchers (zset)  3 marker  4 state  5 claims
-- ARGV  1 guard  2 operation: read, open, put or repair
--       read:   3 ttl of the watch  4 its id, empty for none  5 its channel
--       others: 3 ticket  4 id  5 seq  6 erased  7 keep, 0 forever  8 value
--       repair: 9 ticket and 10 id of the newest promise
-- The record: "<incarnation, ticket and id of the promise> <ticket> <id> <seq> <erased> <end, 0 for never> <value>"
-- What is recorded may end; the promise stays, for an hour at least.
-- No ticket is stored that is farther ahead of this clock than half of the guard time. One that is
-- there all the same is forged, or this clock was set back. It is not returned, and while it is there this
-- node cannot attest. Two days ahead it is a forgery, or of a client whose clock was wrong: then it keeps no
-- run out, and any other version replaces it.
-- A promise of an earlier incarnation still keeps lower runs out, but is no
-- longer its run's leave to record here: newer ones may have been forgotten.
local K, A, call, try, match = KEYS, ARGV, redis.call, redis.pcall, string.match
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local record, marker, state = try('GETRANGE', K[1], '0', '1048575'), try('GETRANGE', K[3], '0', '1023'), try('GETRANGE', K[4], '0', '4095')
for _, read in ipairs({ record, marker, state }) do
  if read.err then return read end
end
local none = string.rep('0', 32)
local pinc, pt, pid, vt, vid, seq, erased, stop, value =
  match(record == '' and '0 0 ' .. none .. ' 0 ' .. none .. ' 0 0 0 ' or record, '^(%d+) (%d+) (%x+) (%d+) (%x+) (%d+) (%d) (%d+) (.*)$')
if not pt or #record > 1048575 then return redis.error_reply('WRONGTYPE ' .. K[1] .. ' holds something else') end
if stop ~= '0' and tonumber(stop) <= now then vt, vid, seq, erased, stop, value = '0', none, '0', '0', '0', '' end
local far = now * 1000 + 172800000000
local hidden, ignored = tonumber(vt) > far, tonumber(pt) > far

local inc, born, caughtUp = match(marker, '^(%d+) (%d+) %S+ %d+(.*)$')
if not inc then return redis.error_reply('OTHERSET this node is not of that set') end
local guard = A[1]
if born + guard > now then return { now * 8 + 3, tonumber(inc), born + guard - now } end
local top = now * 1000 + guard * 500

-- run compares two claims by ticket and id.
local function run(t, i, u, j)
  t, u = tonumber(t), tonumber(u)
  if t ~= u then return t < u and -1 or 1 end
  if i == j then return 0 end
  return i < j and -1 or 1
end
-- left is what the lease of claim i at ticket t has left, 0 unless this node
-- votes for it.
local function left(t, i)
  if t == '0' then return 0 end
  local ct, cid, cx, cf = match(state, '^S(%d+) (%x+)%+%d+ %d+ (%d+) (%d)')
  if not ct then
    cid, ct, cx, cf = match(state, '^S%d+ %x+ %d+ (%x+) (%d+) %d+ (%d+) (%d)')
  end
  local voted = cid == i and cf + 0 > 1
  local bound = match(state, '^Q%d+ %x+ %d+ %d+ %d+ (%d+)')
  if bound then
    local c = try('HGET', K[5], i)
    if type(c) ~= 'string' then return 0 end
    ct, cx = match(c, '^(%d+) %d+ (%d+)')
    voted = tonumber(ct) <= tonumber(bound)
  end
  if not voted or tonumber(ct) ~= tonumber(t) then return 0 end
  return math.max(0, cx - now)
end

-- A watcher is "<id> <channel>", by when it has read the record, times 32, plus k: the watch lasts for 2^k ms from
-- then. A push ends the watch: its client reads, and watches again by that. No request pushes to more than 32.
-- While there are more, the member "~" is behind those that have not read since the change, and each read of
-- a watcher pushes to the next ones.
local function lasts(score) return math.floor(score / 32) + 2 ^ (score % 32) > now end
local function tell()
  local ws, told = call('ZRANGE', K[2], 0, 31, 'WITHSCORES'), {}
  for i = 1, #ws, 2 do
    local w = ws[i]
    told[#told + 1] = w
    if w == '~' then break end
    if lasts(ws[i + 1]) then
      try('PUBLISH', string.sub(w, 34), 'r ' .. now .. ' ' .. inc .. ' ' .. string.sub(w, 1, 32) .. ' ' .. vt)
    end
  end
  if told[1] then call('ZREM', K[2], unpack(told)) end
end

local status, op, T, id = 1, A[2], A[3], A[4]
-- save writes all of it. What has no end is kept without an expiry; all else
-- for an hour at least, as the promise in it keeps out a run that was
-- superseded (rule 5 of the record: a put may go on for half an hour).
local function save()
  local words = table.concat({ pinc, pt, pid, vt, vid, seq, erased, stop, value }, ' ')
  if vt ~= '0' and stop == '0' then
    call('SET', K[1], words)
  else
    call('SET', K[1], words, 'PX', math.max(3600000, stop - now))
  end
end
-- store records what was sent, and pushes to the watchers. The channel of a
-- watch must not hear before the record can be read, so the push comes last.
local function store()
  vt, vid, seq, erased, value, hidden = T, id, A[5], A[6], A[8], false
  stop = A[7] == '0' and '0' or string.format('%.0f', now + A[7])
  save()
  if call('ZCARD', K[2]) > 32 then call('ZADD', K[2], string.format('%.0f', now * 32 + 31), '~') end
  tell()
end

if op ~= 'read' and (tonumber(T) > top or op == 'repair' and tonumber(A[9]) > top) then
  status = 6
elseif op ~= 'read' then
  local kind = call('TYPE', K[2]).ok
  if kind ~= 'none' and kind ~= 'zset' then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
  if op ~= 'repair' then call('ZREM', K[2], '') end -- at maxmemory, too: see full.lua
  local promised, stored = run(ignored and '0' or pt, ignored and none or pid, T, id), run(hidden and '0' or vt, hidden and none or vid, T, id)
  -- Invariant: promises only rise, and a promise is given to a claim that has
  -- this node's vote at this moment. A late open of a claim that has ended
  -- would begin a run, and its put would come between two later ones.
  if op == 'open' then
    if promised > 0 or stored > 0 then
      status = 5
    elseif promised < 0 or pinc ~= inc then
      if left(T, id) == 0 then
        status = 2
      else
        pinc, pt, pid, ignored = inc, T, id, false
        save()
      end
    end
  -- A put needs the promise of this incarnation, or the vote. Without that a
  -- node that forgot a later promise would take the put of the run before.
  elseif op == 'put' then
    if stored == 0 and tonumber(seq) >= tonumber(A[5]) then
      status = 1 -- again, or late
    elseif promised > 0 or stored > 0 then
      status = 5
    elseif (promised ~= 0 or pinc ~= inc) and left(T, id) == 0 then
      status = 2
    else
      pinc, pt, pid, ignored = inc, T, id, false
      store()
    end
  -- A repair brings what other nodes know. Its promise keeps lower runs out,
  -- and is no run's leave to record: pinc is 0.
  else
    local t, i = A[9], A[10]
    if run(T, id, t, i) > 0 then t, i = T, id end
    local against = run(ignored and '0' or pt, ignored and none or pid, t, i)
    if against > 0 then
      status = 5
    else
      if against < 0 then
        pinc, pt, pid, ignored = '0', t, i, false
        save()
      end
      if stored < 0 or stored == 0 and tonumber(seq) < tonumber(A[5]) then store() end
    end
  end
elseif id ~= '' then
  local watch = id .. ' ' .. A[5]
  call('ZREM', K[2], '')
  if A[3] == '0' then
    call('ZREM', K[2], watch)
  else
    local _, k = math.frexp(A[3])
    call('ZADD', K[2], string.format('%.0f', now * 32 + k), watch)
    if call('ZRANK', K[2], '~') then
      tell()
    else
      -- A client that died leaves its watch. Each read removes two that have ended, so they do not pile up.
      local old = call('ZRANGE', K[2], 0, 1, 'WITHSCORES')
      for i = 1, #old, 2 do
        if not lasts(old[i + 1]) then call('ZREM', K[2], old[i]) end
      end
    end
    -- Others may watch for longer.
    if call('PTTL', K[2]) < A[3] * 2 then call('PEXPIRE', K[2], A[3] * 2) end
  end
end

top = math.min(top, far)
hidden, ignored = tonumber(vt) > top, tonumber(pt) > top
local known = (hidden or ignored) and 2 or caughtUp == ' w' and 1 or 0
if hidden then vt, vid, seq, erased, stop, value = '0', none, '0', '0', '0', '' end
if ignored then pt, pid = '0', none end
local rest = stop == '0' and 0 or stop - now
return { now * 8 + status, tonumber(inc), known, tonumber(pt), pid, tonumber(vt), vid, tonumber(seq), tonumber(erased), rest, left(vt, vid), value }
