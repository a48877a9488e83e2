-- plain reads the redlock key. A key of another type that expires is the lock of
-- a library that keeps it there in its own way: symfony/lock a sorted set,
-- Redisson a hash. It bars the name as another Redlock client's key does, until
-- it is gone. A key of another type without an expiry is a program's data, which
-- nothing releases: the request is refused.
plain = try('GETRANGE', K[1], '0', '32')
if plain.err then
  local rest = try('PTTL', K[1])
  if not string.find(plain.err, 'WRONGTYPE', 1, true) or type(rest) ~= 'number' or rest <= 0 then return plain end
  plain = '?'
end
