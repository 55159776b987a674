import { expect, it } from 'vitest'
import { isLoopback } from './loopback.js'

it.each(['127.0.0.1', '127.255.0.3', '::1', '[::1]', '0:0:0:0:0:0:0:1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1'])(
  '%s is this machine',
  (host) => {
    expect(isLoopback(host)).toBe(true)
  },
)

it.each([
  '0.0.0.0',
  '::',
  '128.0.0.1',
  '10.0.0.1',
  '::2',
  'example.com',
  'localhost.example.com',
  '127.0.0.1.example.com',
  '',
])('%j may be reached by others', (host) => {
  expect(isLoopback(host)).toBe(false)
})
