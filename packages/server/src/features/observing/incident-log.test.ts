import { describe, expect, it } from 'vitest'
import { FakeServer, recordingLogger } from '../../../test/fake-server.js'
import { type Actor, PROCESS } from '../../kernel/identity/actor.js'
import { incidentLog } from './incident-log.js'

const session: Actor = { ...PROCESS, door: 'websocket', id: 's', userId: 'alice', address: '203.0.113.7' }

describe('incidentLog', () => {
  it('logs a limit, a refused token and a slow consumer once in ten seconds each, with the number of others', () => {
    let nowMs = 0
    const { logger, lines } = recordingLogger()
    const { refused, upgradeRefused, disconnected } = incidentLog({ logger, now: () => nowMs })
    const tellAll = () => {
      refused?.(session, 'publish', 'E_RATE_LIMIT', 'secret.key')
      refused?.(session, 'connect', 'E_TOKEN_INVALID', undefined)
      refused?.(session, 'connect', 'E_TOKEN_EXPIRED', undefined)
      upgradeRefused?.({ address: '203.0.113.8', origin: undefined }, 'E_CONNECTION_LIMIT')
      disconnected?.(session, 4008, 'client reads too slowly', 5)
      // No incidents.
      refused?.(session, 'publish', 'E_FORBIDDEN', 'a')
      upgradeRefused?.({ address: '203.0.113.8', origin: undefined }, 'E_DRAIN')
      disconnected?.(session, 1000, '', 5)
    }
    for (let count = 0; count < 3; count++) tellAll()
    const who = { session: 's', user: 'alice', address: '203.0.113.7' }
    const expected = [
      ['warn', { code: 'E_RATE_LIMIT', action: 'publish', ...who }, 'a client has reached a limit'],
      ['warn', { code: 'E_TOKEN_INVALID', ...who }, 'a token was refused'],
      ['info', { code: 'E_TOKEN_EXPIRED', ...who }, 'a token was refused'],
      [
        'warn',
        { code: 'E_CONNECTION_LIMIT', action: 'connect', address: '203.0.113.8' },
        'a client has reached a limit',
      ],
      ['warn', { ...who, durationMs: 5 }, 'a client read too slowly and was disconnected'],
    ] as const
    const withOthers = (others: number) =>
      expected.map(([level, fields, message]) => ({ level, fields: { ...fields, others }, message }))
    expect(lines).toEqual(withOthers(0))
    nowMs += 10_000
    tellAll()
    expect(lines.slice(expected.length)).toEqual(withOthers(2))
  })

  it('is part of every server, and a closed connection is logged at debug with its address and duration', async () => {
    const fake = await FakeServer.start({ maxListensPerConnection: 0 })
    const client = await fake.connect()
    client.send({ verb: 'listen', id: '1', pattern: 'a' })
    await fake.settled()
    client.drop(1001)
    await fake.settled()
    expect(fake.log).toContainEqual({
      level: 'warn',
      fields: expect.objectContaining({ code: 'E_LISTEN_LIMIT', action: 'listen', address: '127.0.0.1' }) as object,
      message: 'a client has reached a limit',
    })
    expect(fake.log).toContainEqual({
      level: 'debug',
      fields: expect.objectContaining({
        address: '127.0.0.1',
        durationMs: expect.any(Number) as number,
        code: 1001,
      }) as object,
      message: 'connection closed',
    })
    await fake.server.stop()
  })
})
