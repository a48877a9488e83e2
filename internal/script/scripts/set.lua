-- set: which set of nodes this one belongs to, see docs/internals/protocol.md, "Sets of nodes". The
-- node's marker moves with it: a request names the configuration by the key of
-- the marker, so a node of another configuration has no such key, and refuses.
-- So does a node without a marker: one that has accepted a configuration that
-- is not known to be recorded, or that has left its set.
--
-- KEYS  1 set
-- ARGV  1 promise, accept, commit, ready, restore, move, enter, life or retire  2 ballot; of a restore: what the client has read
--       here; of a life: a random word  3 identity
--       4 configuration, which begins with its stamp  5 random id  6 run id  7 guard of the configuration
-- The set: "<promised> <accepted> <phase> <identity> <configuration>", phase: - none, p accepted, c recorded.
-- A node without a configuration keeps the word of its life, or -, in the place of an identity.
local call, try, match = redis.call, redis.pcall, string.match
local set = try('GETRANGE', KEYS[1], '0', '1048575')
if set.err then return set end
local op, ballot, identity, config = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local promised, accepted, phase, mine, present = match(set == '' and '0 0 - - ' or set, '^(%x+) (%x+) ([-pc]) (%S+) (.*)$')
if not promised or #set > 1048575 then return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds something else') end
local base = string.sub(KEYS[1], 1, -4)
local function markerOf(of) return base .. match(of, '^%S+') end
local higher = config ~= '' and (present == '' or match(present, '^%d+') - match(config, '^%d+') < 0)

-- begin gives the marker of this node to a configuration. A node without one
-- has forgotten what it did, or never did anything: its guard time begins. Else
-- a longer guard time of the configuration counts from the birth of its memory,
-- also if the shorter one is over: it may have come back with an earlier
-- configuration, and have forgotten leases of later ones. A shorter one ends
-- when the longer one would have.
local function begin(forgotten, tail)
  local clock = call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local had = present ~= '' and try('GETRANGE', markerOf(present), '0', '1023')
  local inc, born, run, guard, rest = match(type(had) == 'string' and had or '', '^(%d+) (%d+) (%S+) (%d+)(.*)$')
  if not inc or forgotten then
    inc = string.format('%.0f', tonumber(string.sub(ARGV[5], 1, 13), 16) % 4503599627370495 + 1)
    born, run, rest = now, ARGV[6], ''
    if op == 'ready' and phase ~= 'c' then born, rest = 0, ' w' end
  else
    born = born + math.max(0, guard - ARGV[7])
  end
  if tail then rest = rest == ' w' and tail or '' end
  if present ~= '' then call('DEL', markerOf(present)) end
  call('SET', markerOf(config), inc .. ' ' .. string.format('%.0f', born) .. ' ' .. run .. ' ' .. ARGV[7] .. rest)
end

if op == 'promise' and phase ~= 'c' and ballot > promised then
  promised = ballot
elseif op == 'life' and phase == '-' and mine == '-' then
  mine = ballot
elseif op == 'accept' and phase ~= 'c' and ballot == promised and (ballot ~= accepted or mine == identity) then
  promised, accepted, phase, mine, present = ballot, ballot, 'p', identity, config
elseif (op == 'commit' or op == 'ready' and ballot == accepted) and phase ~= '-' and match(present, '^%S+') == match(config, '^%S+') then
  begin()
  phase = 'c'
elseif op == 'restore' and ballot == set then
  begin(true)
  promised, accepted, phase, mine, present = '0', '0', 'c', identity, config
elseif (op == 'move' or op == 'enter') and phase == 'c' and mine == identity and higher then
  -- A member serves a later configuration. One that enters begins to count
  -- beside others that record what it may lack: it is not caught up, but knows
  -- each number of permits that it needs to ("l").
  begin(false, op == 'enter' and ' l')
  promised, accepted, phase, mine, present = '0', '0', 'c', identity, config
elseif op == 'retire' and phase == 'c' and mine == identity and higher then
  call('DEL', markerOf(present))
  promised, accepted, phase, mine, present = '0', '0', 'c', identity, config
end
local new = promised .. ' ' .. accepted .. ' ' .. phase .. ' ' .. mine .. ' ' .. present
if new ~= set and new ~= '0 0 - - ' then call('SET', KEYS[1], new) end
return new
