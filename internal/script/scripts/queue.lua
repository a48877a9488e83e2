-- The contended case: several claims. State is
-- "Q<fence> <its claim> <capacity> <sum> <digest> <bound> <voted> <unvoted> <notify> <soon> <late> <keys> <stale>":
-- sum, digest, number and highest ticket (bound) of the voted claims, which are
-- always the lowest ones, so that ticket <= bound says "voted" without a flag
-- on every claim; how many of them want to hear of waiters; soon, no later than
-- any expiry; late, no sooner than any; keys, when Redis drops the keys; stale,
-- set when claims went without votes being passed on.
local F, Fo, C, sum, digest, bound, voted, unvoted, notify, soon, late, keys, stale
local changed = false

local count, fields = try('ZCARD', K[3]), try('HLEN', K[4])
if type(count) == 'table' then return count end
if type(fields) == 'table' then return fields end

if not fence then
  local f = { match(state, '^Q(%d+) (%x+)' .. string.rep(' (%d+)', 11) .. '$') }
  if #f ~= 13 then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
  Fo = f[2]
  for i = 1, 13 do f[i] = tonumber(f[i]) end
  F, C, sum, digest, bound, voted, unvoted = f[1], f[3], f[4], f[5], f[6], f[7], f[8]
  notify, soon, late, keys, stale = f[9], f[10], f[11], f[12], f[13] == 1
  -- Somebody else wrote here. To go on could vote twice; the keys expire soon enough.
  if count ~= voted + unvoted or fields ~= count then
    return redis.error_reply('ERR quorate: the queue of ' .. K[1] .. ' is damaged')
  end
end

-- solo is the capacity that has a classic key; there are no semaphores of 0.
local plain, solo = false, K[6] and 0 or 1
if not K[6] and (C == 1 or cap == '1' or A[5] == '1') then
  plain = try('GET', K[1])
  if plain and plain.err then return plain end
end

local function digestOf(cid) return tonumber(string.sub(cid, 1, 13), 16) end
-- Lua by itself writes 14 digits of a number.
local function int(x) return x < 99999999999999 and x or format('%.0f', x) end

-- get returns a claim: t ticket, w weight, x expiry, f notify, o owner.
local function parse(cid, s)
  local t, w, x, f, o = match(s or '', '^(%d+) (%d+) (%d+) (%d) (.*)$')
  return t and { id = cid, t = tonumber(t), w = tonumber(w), x = tonumber(x), f = tonumber(f), o = o }
end
local function get(cid) return parse(cid, call('HGET', K[4], cid)) end
-- all returns the claims of some ids, in their order.
local function all(ids)
  local claims = {}
  for from = 1, #ids, 500 do
    for i, s in ipairs(call('HMGET', K[4], unpack(ids, from, math.min(#ids, from + 499)))) do
      claims[#claims + 1] = parse(ids[from + i - 1], s) or nil
    end
  end
  return claims
end
local function put(c)
  changed = true
  if c.x < soon then soon = c.x end
  if c.x > late then late = c.x end
  call('HSET', K[4], c.id, int(c.t) .. ' ' .. int(c.w) .. ' ' .. c.x .. ' ' .. c.f .. ' ' .. c.o)
end

-- enter counts a claim among the voted; withdraw takes it out of them.
local function enter(c)
  sum, digest, bound = sum + c.w, (digest + digestOf(c.id)) % 4503599627370496, c.t
  voted, unvoted, notify = voted + 1, unvoted - 1, notify + c.f
end
local function withdraw(c)
  sum, digest = sum - c.w, (digest - digestOf(c.id)) % 4503599627370496
  voted, unvoted, notify = voted - 1, unvoted + 1, notify - c.f
  if c.t == bound then
    local below = call('ZREVRANGEBYSCORE', K[3], '(' .. int(bound), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    bound = tonumber(below[2] or 0)
  end
end

local function freePlain(cid)
  if plain == cid then
    call('DEL', K[1])
    plain = false
  end
end
local function takePlain(c)
  if plain and plain ~= c.id then return false end
  call('SET', K[1], c.id, 'PX', math.max(1, c.x - now))
  plain = c.id
  return true
end

local function drop(c)
  changed, stale = true, true
  if c.t <= bound then withdraw(c) end
  unvoted = unvoted - 1
  call('ZREM', K[3], c.id)
  call('HDEL', K[4], c.id)
  if C == solo then freePlain(c.id) end
  -- Redis drops empty keys, and their expiry with them.
  if voted + unvoted == 0 then keys = 0 end
end

-- A lease that would outlast the state was given before the clock was set back.
local function purge()
  if now < soon and late <= now + A[4] then return end
  changed, soon, late = true, 9007199254740992, 0
  local flat = call('HGETALL', K[4])
  for i = 1, #flat, 2 do
    local c = parse(flat[i], flat[i + 1])
    if c and (c.x <= now or c.x > now + A[4]) then
      drop(c)
    elseif c then
      soon, late = math.min(soon, c.x), math.max(late, c.x)
    end
  end
end

-- advance gives the vote to one claim after the other for as long as they fit,
-- and tells each, save the one whose request this is: it learns from the answer.
-- Who may not publish must not stop half-way: whoever waits asks again in time.
local function advance()
  if not stale and not (C == solo and voted == 0) then return end
  while unvoted > 0 do
    local head = call('ZRANGEBYSCORE', K[3], '(' .. int(bound), '+inf', 'LIMIT', 0, 1)
    local c = head[1] and get(head[1])
    if not c or sum + c.w > C or (C == solo and not takePlain(c)) then break end
    local below = int(sum) .. ' ' .. int(digest)
    enter(c)
    changed = true
    if c.id ~= id then
      try('PUBLISH', c.o, 'v ' .. now .. ' ' .. inc .. ' ' .. c.id .. ' ' .. int(c.t) .. ' ' .. (unvoted > 0 and 1 or 0) .. ' ' .. below
        .. (limit and ' ' .. limit .. ' ' .. since or ''))
    end
  end
  stale = false
end

-- renew gives a claim its lease again, and the classic key if it heads a
-- mutex's queue; where another client has taken that, the vote is gone.
local function renew(c)
  c.x = now + ttl
  put(c)
  if C == solo and c.t <= bound and not takePlain(c) then withdraw(c) end
end

local function place(c)
  call('ZADD', K[3], int(c.t), c.id)
  put(c)
  if c.t > F then F, Fo = c.t, c.id end
  stale = true
end

local function save()
  if not changed then return end
  if voted + unvoted == 0 then
    call('SET', K[2], 'S' .. int(F) .. ' ' .. Fo, 'PX', A[4])
    return
  end
  -- Expiries are moved in steps of a quarter of the retention, not at each request.
  if late + A[4] > keys then
    keys = math.floor(late + A[4] * 1.25)
    local rest = math.max(1, keys - now)
    call('PEXPIRE', K[3], rest)
    call('PEXPIRE', K[4], rest)
  end
  call('SET', K[2], 'Q' .. table.concat({
    int(F), Fo, int(C), int(sum), int(digest), int(bound), voted, unvoted, notify,
    int(soon), int(late), int(keys), stale and 1 or 0 }, ' '), 'PX', math.max(1, keys - now))
end

-- wait guesses when asking again may help: when all of up to eight waiters
-- ahead could be gone, and the holder.
local function wait(c)
  local from, most, till = '(' .. int(bound), 9, soon
  if C == solo then
    if call('ZRANK', K[3], c.id) == 0 then -- unvoted head: the classic key is another's
      local rest = call('PTTL', K[1])
      return rest < 0 and 0 or math.max(1, rest), 4
    end
    from, most, till = '-inf', 9 + voted, 0
  end
  local ahead = call('ZRANGEBYSCORE', K[3], from, '(' .. int(c.t), 'LIMIT', 0, most)
  if #ahead == most then return 0, 0 end
  for _, o in ipairs(all(ahead)) do
    if o.x > till then till = o.x end
  end
  return math.max(1, till - now), 0
end

-- reply describes a claim and its view: {status and time, incarnation, ticket, flags, wait,
-- sum, digest, lower ids and weights}. The list is of the claims from a ticket
-- on, so that many that have been there for long cost nothing.
local function reply(c, from)
  local mine = c.t <= bound
  local flags, hint = mine and 1 or 0, 0
  if unvoted > (mine and 0 or 1) then flags = flags + 2 end
  if not mine then
    local foreign
    hint, foreign = wait(c)
    flags = flags + foreign
  end
  local r = { at + 1, tonumber(inc), c.t, flags, hint }
  if limit then
    r[4], r[6], r[7], r[8], r[9] = flags + 32, 0, 0, tonumber(limit), tonumber(since)
  end
  if mine and from then
    if from ~= '-inf' and tonumber(from) > c.t then from = int(c.t) end
    r[4], r[6], r[7] = r[4] + 24, sum, digest
    for _, o in ipairs(all(call('ZRANGEBYSCORE', K[3], from, int(bound)))) do
      if o.t < c.t then
        r[#r + 1] = o.id
        r[#r + 1] = o.w
      else
        r[6], r[7] = r[6] - o.w, (r[7] - digestOf(o.id)) % 4503599627370496
      end
    end
  elseif c.t == bound then
    r[4] = r[4] + 8
    if C ~= solo then r[6], r[7] = sum - c.w, (digest - digestOf(c.id)) % 4503599627370496 end
  end
  return r
end

if fence then
  -- A second claim, or one that does not fit: the first one moves from the string into a queue.
  F, Fo, C, sum, digest, bound, voted, unvoted = tonumber(fence), fenceOf, tonumber(cap), 0, 0, 0, 0, 0
  notify, soon, late, keys, stale = 0, 9007199254740992, 0, 0, false
  call('DEL', K[3], K[4])
  if cid then
    local c = { id = cid, t = tonumber(ct), w = tonumber(cw), x = tonumber(cx), f = cf % 2, o = co }
    call('ZADD', K[3], ct, cid)
    unvoted = 1
    put(c)
    if cf + 0 > 1 then enter(c) end
  end
end
-- After a Resize there may be room for others; who has permits keeps them.
if limit and C ~= tonumber(limit) then
  C, changed, stale = tonumber(limit), true, true
end
if recovering <= 0 then
  purge()
  advance()
end
