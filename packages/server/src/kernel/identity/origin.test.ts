import { describe, expect, it } from 'vitest'
import { isOriginAllowed, isOriginPattern } from './origin.js'

describe('isOriginAllowed', () => {
  it('lets in what sends no Origin: it is no browser page', () => {
    expect(isOriginAllowed(undefined, 'example.com', [])).toBe(true)
    expect(isOriginAllowed(undefined, undefined, [])).toBe(true)
  })

  it.each([
    ['http://example.com', 'example.com'],
    ['https://example.com', 'example.com'],
    ['https://example.com', 'example.com:443'],
    ['http://example.com', 'example.com:80'],
    ['https://example.com:443', 'example.com'],
    ['http://localhost:8080', 'localhost:8080'],
    ['http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://[::1]:8080', '[::1]:8080'],
    ['https://Example.COM', 'eXample.com'],
  ])('lets in the page %s of the server %s', (origin, host) => {
    expect(isOriginAllowed(origin, host, [])).toBe(true)
  })

  it.each([
    ['http://evil.example', 'example.com'],
    ['http://sub.example.com', 'example.com'],
    ['http://example.com.evil.example', 'example.com'],
    ['http://example.com:81', 'example.com'],
    ['http://example.com', 'example.com:8080'],
    ['http://localhost:5173', 'localhost:8080'],
    ['http://127.0.0.1:8080', 'localhost:8080'],
    ['https://example.com', undefined],
    ['https://example.com', ''],
    ['ftp://example.com', 'example.com'],
    ['null', 'null'],
    ['', ''],
    ['example.com', 'example.com'],
    ['https://example.com/', 'example.com'],
    ['https://user@example.com', 'example.com'],
    ['https://example.com https://evil.example', 'example.com'],
    ['https://example.com, https://evil.example', 'example.com'],
    ['chrome-extension://abcdef', 'abcdef'],
  ])('refuses the page %s at the server %s', (origin, host) => {
    expect(isOriginAllowed(origin, host, [])).toBe(false)
  })

  it.each([
    ['http://localhost:8080', 'localhost:8080'],
    ['http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://[::1]:8080', '[::1]:8080'],
  ])('lets in the page %s where only names of this machine count', (origin, host) => {
    expect(isOriginAllowed(origin, host, [], 'loopback')).toBe(true)
  })

  it('does not take a page for its own that has given its name the address of this machine', () => {
    const rebound = ['http://evil.example:8080', 'evil.example:8080'] as const
    expect(isOriginAllowed(...rebound, [], 'loopback')).toBe(false)
    expect(isOriginAllowed(...rebound, ['http://evil.example:8080'], 'loopback')).toBe(true)
    expect(isOriginAllowed(...rebound, [], 'all')).toBe(true)
  })

  it('keeps letting in its own pages when others are allowed too', () => {
    expect(isOriginAllowed('http://localhost:8080', 'localhost:8080', ['https://app.example.com'])).toBe(true)
  })

  it.each([
    ['*', 'https://anything.example'],
    ['*', 'null'],
    ['null', 'null'],
    ['https://app.example.com', 'https://app.example.com'],
    ['https://app.example.com', 'https://app.example.com:443'],
    ['https://app.example.com:443', 'https://app.example.com'],
    ['https://APP.example.com', 'https://app.example.com'],
    ['https://*.example.com', 'https://app.example.com'],
    ['https://*.example.com', 'https://a.b.example.com'],
    ['http://localhost:*', 'http://localhost:5173'],
    ['http://localhost:*', 'http://localhost'],
    ['http://[::1]:*', 'http://[::1]:3000'],
    ['https://*.example.com:8443', 'https://app.example.com:8443'],
    ['chrome-extension://abcdef', 'chrome-extension://abcdef'],
  ])('%s lets in %s', (pattern, origin) => {
    expect(isOriginAllowed(origin, 'server.example', [pattern])).toBe(true)
  })

  it.each([
    ['https://app.example.com', 'http://app.example.com'],
    ['https://app.example.com', 'https://app.example.com:8443'],
    ['https://app.example.com', 'https://app.example.com.evil.example'],
    ['https://*.example.com', 'https://example.com'],
    ['https://*.example.com', 'https://evilexample.com'],
    ['https://*.example.com', 'https://.example.com'],
    ['https://*.example.com', 'https://evil.example/.example.com'],
    ['https://*.example.com', 'https://evil.example#.example.com'],
    ['https://*.example.com', 'http://app.example.com'],
    ['https://*.example.com', 'https://app.example.com:8443'],
    ['http://localhost:*', 'https://localhost:5173'],
    ['http://localhost:*', 'http://localhost.evil.example:5173'],
    ['https://app.example.com', 'null'],
    ['not an origin', 'https://app.example.com'],
  ])('%s does not let in %s', (pattern, origin) => {
    expect(isOriginAllowed(origin, 'server.example', [pattern])).toBe(false)
  })
})

describe('isOriginPattern', () => {
  it.each(['*', 'null', 'https://a.example', 'https://*.a.example', 'http://localhost:*', 'http://[::1]:80'])(
    'takes %s',
    (text) => {
      expect(isOriginPattern(text)).toBe(true)
    },
  )

  it.each([
    '',
    'a.example',
    'https://',
    'https://*',
    'https://a.*.example',
    'https://a.example/',
    'https://a.example/x',
    'https://a b',
    '*://a.example',
    'https://a.example:port',
  ])('does not take %j', (text) => {
    expect(isOriginPattern(text)).toBe(false)
  })
})
