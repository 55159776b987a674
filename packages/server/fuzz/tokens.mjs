// Fuzzes the verification of tokens: what is accepted at once is what jose accepts, whatever was signed and then changed;
// and a verifier answers with an identity or a WebMQError.
// Usage: npx tsc -b packages/server && node packages/server/fuzz/tokens.mjs [--seconds 60] [--seed N]
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { jwtVerify } from 'jose'
import { isPattern, WebMQError } from 'webmq-client/protocol'
import { fuzz, mutate } from '../../client/fuzz/fuzz.mjs'
import { PlainTokens } from '../dist/kernel/identity/plain-token.js'
import { createTokenVerifier } from '../dist/kernel/identity/token-verifier.js'

const SECRETS = ['the first of two secrets, of more than 32 bytes', 'the second of two secrets, of more than 32 bytes']
const NOW_S = 1_800_000_000
const RULES = { issuer: 'https://issuer.example', audience: 'webmq', clockToleranceS: 5 }
const ALGORITHMS = ['HS256', 'HS512']
const HASHES = ['sha256', 'sha512']
const CLAIMS = {
  sub: 'ann',
  jti: 't1',
  iss: RULES.issuer,
  aud: [RULES.audience],
  iat: NOW_S,
  nbf: NOW_S,
  exp: NOW_S + 60,
  webmq: { grants: [{ keys: ['a.*', '#'], allow: ['listen'] }], limits: { maxListensPerConnection: 5 } },
}
const HEADERS = [
  '{"alg":"HS256"}',
  '{"alg":"HS512","typ":"JWT","kid":"1"}',
  '{"alg":"HS256","crit":["b64"],"b64":false}',
]
const PAYLOADS = [CLAIMS, { ...CLAIMS, aud: 'webmq' }, { iss: RULES.issuer, aud: 'webmq' }].map((claims) =>
  Buffer.from(JSON.stringify(claims)),
)
const INTERESTING = [
  '"',
  '{',
  '}',
  ',',
  ':',
  'null',
  '1e999',
  '-1',
  '""',
  '[]',
  '\\u0000',
  '\\ud800',
  'none',
  'ü',
  '.',
  '=',
  ' ',
]
  .concat(['"exp":1,', '"nbf":9999999999,', '"iat":"x",', '"sub":5,', '"b64":true,', '"__proto__":{},'])
  .map((text) => Buffer.from(text))

const jwt = { secret: SECRETS, algorithms: ALGORITHMS }
const nowMs = NOW_S * 1000 + 999
const plain = new PlainTokens(jwt, RULES)
const verifier = createTokenVerifier({ ...jwt, ...RULES }, { now: () => nowMs })

await fuzz('tokens', async (random) => {
  const part = (corpus) =>
    random.below(3) === 0 ? random.pick(corpus) : Buffer.from(mutate(random, corpus, INTERESTING))
  const header = part(HEADERS.map((text) => Buffer.from(text))).toString('base64url')
  const text = `${header}.${part(PAYLOADS).toString('base64url')}`
  const signature = createHmac(random.pick(HASHES), random.pick([...SECRETS, 'another']))
    .update(text)
    .digest('base64url')
  const signed = Buffer.from(`${text}.${signature}`)
  const token =
    random.below(4) === 0 ? Buffer.from(mutate(random, [signed], INTERESTING)).toString() : signed.toString()

  const claims = plain.verify(token, nowMs)
  if (claims !== undefined) assert.deepEqual(claims, await verifyByJose(token), token)
  const atOnce = await attempt(() => verifier.verifyAtOnce(token))
  const identity = await attempt(() => verifier.verify(token))
  if (identity instanceof WebMQError) {
    assert.ok(!identity.message.includes(text), 'no message has the token')
    assert.ok(atOnce === undefined || atOnce instanceof WebMQError, token)
    return [identity.code]
  }
  if (atOnce !== undefined) assert.deepEqual(atOnce, identity, token)
  for (const { keys } of identity.grants) assert.ok(keys.every(isPattern), token)
  return [claims === undefined ? 'valid' : 'plain and valid']
})

async function attempt(verify) {
  try {
    return await verify()
  } catch (error) {
    assert.ok(error instanceof WebMQError, String(error))
    assert.notEqual(error.code, 'E_INTERNAL', error.message)
    return error
  }
}

/** The claims that jose accepts with one of the secrets; `undefined` when it accepts the token with none. */
async function verifyByJose(token) {
  for (const secret of SECRETS) {
    try {
      const { payload } = await jwtVerify(token, Buffer.from(secret), {
        ...{ algorithms: ALGORITHMS, issuer: RULES.issuer, audience: RULES.audience },
        ...{ clockTolerance: RULES.clockToleranceS, currentDate: new Date(nowMs) },
      })
      return payload
    } catch {
      // The other secret may have signed it.
    }
  }
  return undefined
}
