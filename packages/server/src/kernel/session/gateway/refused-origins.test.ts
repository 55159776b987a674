import { expect, it } from 'vitest'
import { RefusedOrigins } from './refused-origins.js'

function createRecorder() {
  const origins: unknown[] = []
  return { origins, logger: { warn: (fields: object | string) => void origins.push(fields) } }
}

it('tells of an origin once', () => {
  const { origins, logger } = createRecorder()
  const refused = new RefusedOrigins(logger, () => 0)
  for (const origin of ['http://localhost:5173', 'https://evil.example', 'http://localhost:5173'])
    refused.report(origin)
  expect(origins).toEqual([{ origin: 'http://localhost:5173' }, { origin: 'https://evil.example' }])
})

it('does not let strangers fill the log', () => {
  const { origins, logger } = createRecorder()
  const refused = new RefusedOrigins(logger, () => 0)
  for (let index = 0; index < 10_000; index++) refused.report(`https://${index}.example/${'x'.repeat(8000)}`)
  expect(origins).toHaveLength(100)
  expect(JSON.stringify(origins).length).toBeLessThan(100 * 220)
})

it('tells of new origins later, though strangers have sent many', () => {
  const { origins, logger } = createRecorder()
  let nowMs = 1_000_000_000
  const refused = new RefusedOrigins(logger, () => nowMs)
  for (let index = 0; index < 1_000; index++) refused.report(`https://${index}.example`)
  nowMs += 3_600_000
  refused.report('https://app.example')
  expect(origins.slice(100)).toEqual([{ origin: 'https://app.example' }])
})
