-- The contended case: several claims. State is
-- "Q<fence> <its claim> <capacity> <sum> <digest> <bound> <voted> <unvoted> <notify> <soon> <late> <keys> <stale>":
-- sum, digest, number and highest ticket (bound) of the voted claims, which are
-- always the lowest ones, so that ticket <= bound says "voted" without a flag
-- on every claim; how many of them want to hear of waiters; soon, no later than
-- any expiry; late, no sooner than any; keys, when Redis drops the keys; stale,
-- set when claims went without votes being passed on. While one request has left
-- something over for the next (rest.lua), " <swept> <called>" follows: up to which tickets
-- expired claims have been dropped and holders have heard of waiters, 0 where that is not under way.
--
-- Invariant: no request looks at, votes for or tells more than most claims,
-- however many there are. A script blocks the node for all its clients.
--
-- All but voted and unvoted stay the digits that they are stored as: to make a
-- number of each and digits of it again takes longer than all the commands. And
-- what is done at every request is in parts (advance, keep, withdraw, save,
-- answer) instead of functions, as it takes a while to create those.
local F, Fo, C, sum, digest, bound, voted, unvoted, notify, soon, late, keys, stale, over
local changed, swept, called = false, false, false
local most, votes = 32, 32 -- votes: how many this request may still give

local count, fields = try('ZCARD', K[3]), try('HLEN', K[4])
if type(count) == 'table' then return count end
if type(fields) == 'table' then return fields end

if not fence then
  F, Fo, C, sum, digest, bound, voted, unvoted, notify, soon, late, keys, stale, over =
    match(state, '^Q(%d+) (%x+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d)( ?%d* ?%d*)$')
  if not F then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
  voted, unvoted = voted + 0, unvoted + 0
  -- Claims that were taken back within the guard time: the last one has the
  -- fence from now on.
  if F == '0' and recovering <= 0 then
    local top = call('ZRANGE', K[3], -1, -1, 'WITHSCORES')
    if top[1] then F, Fo, changed, stale = format('%.0f', tonumber(top[2])), top[1], true, '1' end
  end
  if over ~= '' then
    swept, called = match(over, '^ (%d+) (%d+)$')
    if swept == '0' then swept = false end
    if called == '0' then called = false end
  end
  -- Something other than these scripts wrote here. To go on could vote twice.
  -- The keys expire soon enough.
  if count ~= voted + unvoted or fields ~= count then
    return redis.error_reply('ERR quorate: the queue of ' .. K[1] .. ' is damaged')
  end
end

-- solo is the capacity that has a redlock key.
local plain, solo = false, not K[6] and '1'
if solo and (C == solo or cap == solo or capacity == solo) then
  --@ plain
  if plain == '' and call('TYPE', K[1]).ok == 'none' then plain = false end
end

-- A claim is "<ticket> <weight> <expiry> <notify> <owner>". Its pushes go to the
-- first word of the owner; a note may follow.
local claim, pushed = '^(%d+) (%d+) (%d+) (%d) (.*)$', '^(%d+) (%d+) (%d+) (%d) (%S*)'
local function digestOf(cid) return tonumber(string.sub(cid, 1, 13), 16) end
-- The claim of this request as it is stored, if it has no vote.
local mine

if fence then
  -- A second claim, or one that does not fit: the first one moves from the
  -- string into a queue.
  F, Fo, C, sum, digest, bound, voted, unvoted = fence, fenceOf, cap, '0', '0', '0', 0, 0
  notify, soon, late, keys, stale = '0', '9007199254740992', '0', '0', '0'
  call('DEL', K[3], K[4])
  if cid then
    call('ZADD', K[3], ct, cid)
    call('HSET', K[4], cid, ct .. ' ' .. cw .. ' ' .. cx .. ' ' .. cf % 2 .. ' ' .. co)
    changed, soon, late = true, cx, cx
    if cf + 0 > 1 then
      sum, bound, voted, notify = cw, ct, 1, cf % 2
      digest = format('%.0f', digestOf(cid))
    else
      unvoted, stale = 1, '1'
    end
  end
end
-- After a Resize there may be room for others. Holders keep their permits.
if limit and C ~= limit then C, changed, stale = limit, true, '1' end

-- Leases that have ended, in the order of the tickets. A claim that is not
-- dropped yet counts as if its lease were longer, but gets no vote. One that
-- would outlast the retention was given before the clock was set back, as every
-- lease is shorter than that. How much of it is left is not known any more, so
-- it gets as much as it may have at most. A patient request drops none:
-- a node that hung, or was cut off, finds that all leases have ended, and a
-- holder that is dropped cannot come back at its ticket.
if recovering <= 0 and (swept or late + 0 > now + keep or soon + 0 <= now and not patient) then
  local ids, gone, dropped = call('ZRANGEBYSCORE', K[3], swept and '(' .. swept or '-inf', '+inf', 'LIMIT', 0, most + 1), {}, false
  local following = ids[most + 1]
  ids[most + 1] = nil
  if not swept then soon, late = 9007199254740992, 0 end
  changed, soon, late, swept = true, tonumber(soon), tonumber(late), false
  local total, all = tonumber(sum), tonumber(digest)
  for i, s in ipairs(ids[1] and call('HMGET', K[4], unpack(ids)) or ids) do
    local t, w, x, f = match(s or '', claim)
    x = tonumber(x)
    if x and x > now + keep then
      x = now + keep
      call('HSET', K[4], ids[i], (string.gsub(s, '^(%d+ %d+) %d+', '%1 ' .. format('%.0f', x))))
    end
    if x and x <= now then
      stale = '1'
      gone[#gone + 1] = ids[i]
      if t - bound <= 0 then
        dropped, voted, notify, total = true, voted - 1, notify - f, total - w
        all = (all - digestOf(ids[i])) % 4503599627370496
      else
        unvoted = unvoted - 1
      end
      if C == solo and plain == ids[i] then
        call('DEL', K[1])
        plain = false
      end
    elseif x then
      soon, late = math.min(soon, x), math.max(late, x)
    end
    swept = following and t
  end
  if gone[1] then
    call('ZREM', K[3], unpack(gone))
    call('HDEL', K[4], unpack(gone))
  end
  if dropped then
    sum, digest, bound = format('%.0f', total), format('%.0f', all), '0'
    if voted > 0 then bound = format('%.0f', tonumber(call('ZRANGE', K[3], voted - 1, voted - 1, 'WITHSCORES')[2] or 0)) end
  end
  soon, late = format('%.0f', soon), format('%.0f', late)
  -- Redis drops empty keys, and their expiry with them.
  if voted + unvoted == 0 then keys = '0' end
end
