-- set: which set of nodes this one belongs to. The register of the set's first
-- configuration, see docs/membership.md. The node's marker moves with it: a
-- request names the configuration by the key of the marker, so a node of
-- another configuration has no such key, and refuses.
--
-- KEYS  1 set  2 marker of a node without a recorded set
-- ARGV  1 promise, accept, commit, restore, move, enter, regain or life  2 ballot; of a restore: what the client has read here;
--       of a life: a random word  3 identity
--       4 configuration, which begins with its stamp  5 random id  6 run id  7 guard and retention
-- The set: "<promised> <accepted> <phase> <identity> <configuration>", phase: - none, p accepted, c recorded,
-- r accepted by a node that lost its data: it has no marker until that is recorded, so it refuses every request.
-- A node without a configuration keeps the word of its life, or -, in the place of an identity.
local call, try, match = redis.call, redis.pcall, string.match
local set = try('GET', KEYS[1])
if type(set) == 'table' then return set end
local op, ballot, identity, config = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local promised, accepted, phase, mine, present = match(set or '0 0 - - ', '^(%x+) (%x+) ([-pcr]) (%S+) (.*)$')
if not promised then return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds something else') end
local base = string.sub(KEYS[1], 1, -4)
local function markerOf(of) return base .. match(of, '^%S+') end

-- closed: a program that knows no sets finds a key of another type, and does
-- nothing.
local function closed() call('ZADD', KEYS[2], 0, 'the set of this node is recorded in ' .. KEYS[1]) end

-- move gives the marker of this node to a configuration. A node without one has
-- forgotten what it did, or never did anything: its guard time begins.
local function move(to, forgotten, enters)
  local from = phase == '-' and KEYS[2] or markerOf(present)
  local marker = try('GET', from)
  if type(marker) ~= 'string' or forgotten then
    local clock = call('TIME')
    local inc = string.format('%.0f', tonumber(string.sub(ARGV[5], 1, 13), 16) % 4503599627370495 + 1)
    marker = inc .. ' ' .. string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)) .. ' ' .. ARGV[6] .. ' ' .. ARGV[7]
  end
  if enters then marker = string.gsub(string.gsub(marker, ' l$', ''), ' w$', ' l') end
  call('DEL', from, KEYS[2])
  call('SET', markerOf(to), marker)
  closed()
end

if op == 'promise' and phase ~= 'c' and ballot > promised then
  promised = ballot
elseif op == 'life' and phase == '-' and mine == '-' then
  mine = ballot
elseif op == 'accept' and phase ~= 'c' and ballot >= promised and (ballot ~= accepted or mine == identity) then
  move(config)
  promised, accepted, phase, mine, present = ballot, ballot, 'p', identity, config
elseif op == 'regain' and phase ~= 'c' and ballot >= promised and (ballot ~= accepted or mine == identity) then
  if phase ~= '-' then call('DEL', markerOf(present)) end
  call('DEL', KEYS[2])
  closed()
  promised, accepted, phase, mine, present = ballot, ballot, 'r', identity, config
elseif op == 'commit' and phase ~= '-' and match(present, '^%S+') == match(config, '^%S+') then
  if not try('GET', markerOf(present)) then move(present) end
  phase = 'c'
elseif op == 'restore' and ballot == (set or '') then
  move(config, true)
  promised, accepted, phase, mine, present = '0', '0', 'c', identity, config
elseif (op == 'move' or op == 'enter') and (phase == 'p' or phase == 'c') and mine == identity and
  match(present, '^%d+') - match(config, '^%d+') < 0 then
  -- A member serves a later configuration. One that enters begins to count
  -- beside others that record what it may lack: it is not caught up, but knows
  -- each number of permits that it needs to ("l").
  move(config, false, op == 'enter')
  promised, accepted, phase, mine, present = '0', '0', 'c', identity, config
end
local new = promised .. ' ' .. accepted .. ' ' .. phase .. ' ' .. mine .. ' ' .. present
if new ~= set and new ~= '0 0 - - ' then call('SET', KEYS[1], new) end
return new
