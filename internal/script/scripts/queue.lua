-- The contended case: several claims. State is
-- "Q<fence> <its claim> <capacity> <sum> <digest> <bound> <voted> <unvoted> <notify> <soon> <late> <keys> <stale>":
-- sum, digest, number and highest ticket (bound) of the voted claims, which are
-- always the lowest ones, so that ticket <= bound says "voted" without a flag
-- on every claim; how many of them want to hear of waiters; soon, no later than
-- any expiry; late, no sooner than any; keys, when Redis drops the keys; stale,
-- set when claims went without votes being passed on.
--
-- All but voted and unvoted stay the digits that they are stored as: to make a
-- number of each and digits of it again takes longer than all the commands.
-- And what is done at every request is in parts (advance, keep, withdraw, save, answer)
-- instead of functions, as it takes a while to create those.
local F, Fo, C, sum, digest, bound, voted, unvoted, notify, soon, late, keys, stale
local changed = false

local count, fields = try('ZCARD', K[3]), try('HLEN', K[4])
if type(count) == 'table' then return count end
if type(fields) == 'table' then return fields end

if not fence then
  F, Fo, C, sum, digest, bound, voted, unvoted, notify, soon, late, keys, stale =
    match(state, '^Q(%d+) (%x+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not F then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
  voted, unvoted = voted + 0, unvoted + 0
  -- Somebody else wrote here. To go on could vote twice; the keys expire soon enough.
  if count ~= voted + unvoted or fields ~= count then
    return redis.error_reply('ERR quorate: the queue of ' .. K[1] .. ' is damaged')
  end
end

-- solo is the capacity that has a classic key.
local plain, solo = false, not K[6] and '1'
if solo and (C == solo or cap == solo or A[5] == solo) then
  plain = try('GET', K[1])
  if plain and plain.err then return plain end
end

-- A claim is "<ticket> <weight> <expiry> <notify> <owner>".
local claim = '^(%d+) (%d+) (%d+) (%d) (.*)$'
local function digestOf(cid) return tonumber(string.sub(cid, 1, 13), 16) end
-- The claim of this request as it is stored, if it has no vote.
local mine

if fence then
  -- A second claim, or one that does not fit: the first one moves from the string into a queue.
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
      unvoted = 1
    end
  end
end
-- After a Resize there may be room for others; who has permits keeps them.
if limit and C ~= limit then C, changed, stale = limit, true, '1' end

-- Leases that have ended. One that would outlast the longest retention that any
-- client has shown was given before the clock was set back, as every lease is
-- shorter than that. How much of it is left is not known any more, so it gets as
-- much as it may have at most.
if recovering <= 0 and (soon + 0 <= now or late + 0 > now + keep) then
  local top, total, all = bound + 0, 0, 0
  changed, bound, voted, unvoted, notify, soon, late = true, '0', 0, 0, 0, 9007199254740992, 0
  local flat = call('HGETALL', K[4])
  for i = 1, #flat, 2 do
    local cid, t, w, x, f = flat[i], match(flat[i + 1], claim)
    x = tonumber(x)
    if x and x > now + keep then
      x = now + keep
      call('HSET', K[4], cid, (string.gsub(flat[i + 1], '^(%d+ %d+) %d+', '%1 ' .. format('%.0f', x))))
    end
    if x and x <= now then
      stale = '1'
      call('ZREM', K[3], cid)
      call('HDEL', K[4], cid)
      if C == solo and plain == cid then
        call('DEL', K[1])
        plain = false
      end
    elseif x then
      soon, late = math.min(soon, x), math.max(late, x)
      if t + 0 > top then
        unvoted = unvoted + 1
      else
        voted, notify, total = voted + 1, notify + f, total + w
        all = (all + digestOf(cid)) % 4503599627370496
        if t + 0 > bound + 0 then bound = t end
      end
    end
  end
  soon, late, sum, digest = format('%.0f', soon), format('%.0f', late), format('%.0f', total), format('%.0f', all)
  -- Redis drops empty keys, and their expiry with them.
  if voted + unvoted == 0 then keys = '0' end
end
