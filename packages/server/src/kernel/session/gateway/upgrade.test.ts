import { describe, expect, it } from 'vitest'
import { DOCS_URL, WebMQError } from 'webmq-client/protocol'
import type { UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import { examineUpgrade, rejectionOf } from './upgrade.js'

const POLICY = { path: '/ws', origins: ['https://app.example.com'] }

function request(more: Partial<UpgradeRequest> = {}): UpgradeRequest {
  const { headers = { host: 'here:8080' } } = more
  return {
    id: 1 as UpgradeId,
    kind: 'websocket',
    path: '/ws',
    query: '',
    headers,
    header: (name) => headers[name],
    subprotocols: ['webmq.v1'],
    remoteAddress: '127.0.0.1',
    remotePort: 1,
    ...more,
  }
}

const examine = (more?: Partial<UpgradeRequest>) => examineUpgrade(request(more), POLICY)

describe('examineUpgrade', () => {
  it.each([
    ['another path', { path: '/other' }, 'E_PATH_NOT_FOUND'],
    ['a path below', { path: '/ws/' }, 'E_PATH_NOT_FOUND'],
    ['a foreign origin', { headers: { host: 'here:8080', origin: 'https://evil.example' } }, 'E_ORIGIN_FORBIDDEN'],
    ['other subprotocols only', { subprotocols: ['mqtt'] }, 'E_SUBPROTOCOL_UNSUPPORTED'],
    ['a token without the subprotocol', { subprotocols: ['webmq.bearer.abc'] }, 'E_SUBPROTOCOL_UNSUPPORTED'],
  ])('refuses %s', (_what, more, code) => {
    expect(() => examine(more)).toThrow(expect.objectContaining({ code }))
  })

  it('takes its own origin, an allowed one, and none', () => {
    for (const origin of ['http://here:8080', 'https://app.example.com', undefined]) {
      expect(examine({ headers: { host: 'here:8080', ...(origin && { origin }) } }).subprotocol).toBe('webmq.v1')
    }
  })

  it('names the subprotocol only to those who offered it', () => {
    expect(examine({ subprotocols: ['mqtt', 'webmq.v1'] })).toEqual({ subprotocol: 'webmq.v1' })
    expect(examine({ subprotocols: [] })).toEqual({})
  })

  it('finds a token in the header, else among the subprotocols', () => {
    const subprotocols = ['webmq.v1', 'webmq.bearer.from.subprotocol']
    expect(examine({ subprotocols }).token).toBe('from.subprotocol')
    expect(examine({ subprotocols, headers: { authorization: 'bearer from.header' } }).token).toBe('from.header')
    expect(examine({ headers: { authorization: 'Basic dXNlcjpwYXNz' } }).token).toBeUndefined()
  })
})

describe('rejectionOf', () => {
  it('answers with the status of the error and a body for machines', () => {
    const { status, headers, body } = rejectionOf(new WebMQError('E_ORIGIN_FORBIDDEN'), { 'retry-after': '1' })
    expect(status).toBe(403)
    expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'retry-after': '1' })
    expect(JSON.parse(body ?? '')).toEqual({
      code: 'E_ORIGIN_FORBIDDEN',
      message: 'origin is not allowed',
      docs: `${DOCS_URL}errors.md#e_origin_forbidden`,
    })
  })

  it('answers 503 while draining', () => {
    expect(rejectionOf(new WebMQError('E_DRAIN')).status).toBe(503)
  })
})
