-- open: see whether this node may vote, and what the state says. A script that
-- has read.lua before it sets what the request says: id, px (the ttl), keep (how
-- long the state is kept: ttl and retention), guard, capacity, and flags (2 list,
-- 4 settle, 8 of a beat or settle that is not patient), which a leave has not.
local match, format = string.match, string.format
local ttl = tonumber(px)
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- An answer begins with its status and with when it was given: a client sees by
-- that whether this clock has jumped. It is a text of numbers, or of one alone
-- where there is not more to say, or where it is long a list: of a list Redis
-- finds the length when it has been written, into memory of its own. A text is
-- of an answer that is OK, and has the time in the two numbers of TIME instead:
-- to write a number takes longer than to read one.
local at = now * 8

if state.err then return state end
if marker.err then return marker end
if state == '' then
  state = 'R0 0'
elseif #state > 4095 then
  state = ''
end

-- The key of the marker names a configuration, which gives all its clients one
-- guard time and one retention. No marker: the client counts on another
-- configuration than this node (set.lua), or the memory is gone. To take a
-- claim away is safe all the same: a leave, which has no flags, goes on as on a
-- node that does not vote.
local inc, born = match(marker, '^(%d+) (%d+) ')
if not inc then
  if flags then return redis.error_reply('OTHERSET this node is not of that set') end
  inc, born = '0', now + 1
end
local recovering = born + guard - now

-- A semaphore has no redlock key; and a node that has forgotten a Resize must
-- not vote by the old number, so for a semaphore it recovers until it is caught
-- up, or for another guard time when no client repairs it.
local limit, since
if K[6] then
  local resized = try('GETRANGE', K[6], '0', '1023')
  if resized.err then return resized end
  since, limit = match(resized, '^%d+ %d+ %x+ (%d+) %x+ %d+ 0 %d+ (%d+)$')
  if recovering <= 0 and not string.find(marker, ' [wl]$') then recovering = math.min(100, recovering + guard) end
  -- A Resize of the future (record.lua) hides the last true one.
  if since and since - now * 1000 > math.min(guard * 500, 172800000000) then recovering = math.max(100, recovering) end
end
local classic = capacity == '1' and not K[6]

-- The state of no claim is "R<fence> <its claim>", whatever follows: R stands for released. Of one claim, when the
-- fence is its own ticket, it is "S<fence> <its claim>+<capacity> <weight> <expiry> <flags> <owner>", else
-- "S<fence> <its claim> <capacity> <id> <ticket> <weight> <expiry> <flags> <owner>".
-- Flags: 1 notify, 2 voted. Of more claims: see queue.lua.
local fence, fenceOf, one = match(state, '^[RS](%d+) (%x+)(.*)$')
local cap, cid, ct, cw, cx, cf, co
local live, taken = false, false
if one and one ~= '' and string.byte(state) == 83 then
  cap, cw, cx, cf, co = match(one, '^%+(%d+) (%d+) (%d+) (%d) (.*)$')
  if cap then
    cid, ct = fenceOf, fence
  else
    cap, cid, ct, cw, cx, cf, co = match(one, '^ (%d+) (%x+) (%d+) (%d+) (%d+) (%d) (.*)$')
    -- A claim that was taken back within the guard time (enter.lua): it has the
    -- fence from now on.
    if fence == '0' and cid and recovering <= 0 then fence, fenceOf, taken = ct, cid, true end
  end
  if not cid then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
  live = tonumber(cx) > now
end
