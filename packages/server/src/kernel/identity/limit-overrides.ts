import { WebMQError } from 'webmq-client/protocol'
import { isObject } from '../base/is-object.js'

/** Limits that a token may set for its user, lower or higher than the options say; named as those, with the same range. */
export const OVERRIDABLE_LIMITS = {
  maxListensPerConnection: [0, 1_000_000],
  maxListensPerUser: [0, 10_000_000],
  maxConnectionsPerUser: [1, 10_000_000],
  maxPublishesPerSecond: [1, 1_000_000_000],
  maxPublishBytesPerSecond: [1, 1_000_000_000_000],
  maxPublishesPerSecondPerUser: [1, 1_000_000_000],
  maxPublishBytesPerSecondPerUser: [1, 1_000_000_000_000],
} as const

export type LimitName = keyof typeof OVERRIDABLE_LIMITS

export type LimitOverrides = { readonly [Name in LimitName]?: number }

/**
 * Reads the claim `webmq.limits` of a token: `{ maxPublishesPerSecond: 10 }`. Absent: the options apply.
 * @throws {WebMQError} `E_TOKEN_INVALID` with the malformed part. Unknown names are refused too, because a limit that is
 *   misspelt would be none.
 */
export function parseLimitOverrides(webmqClaim: unknown): LimitOverrides | undefined {
  const claim = isObject(webmqClaim) ? webmqClaim.limits : undefined
  if (claim === undefined) return undefined
  if (!isObject(claim)) throw malformed('webmq.limits', 'an object')
  const overrides: { [Name in LimitName]?: number } = {}
  for (const [name, value] of Object.entries(claim)) {
    if (!isLimitName(name))
      throw malformed('webmq.limits', `an object with names of ${Object.keys(OVERRIDABLE_LIMITS).join(', ')} alone`)
    const [min, max] = OVERRIDABLE_LIMITS[name]
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      throw malformed(`webmq.limits.${name}`, `a whole number from ${min} to ${max}`)
    }
    overrides[name] = value
  }
  return overrides
}

function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(OVERRIDABLE_LIMITS, name)
}

function malformed(where: string, allowed: string): WebMQError {
  return new WebMQError('E_TOKEN_INVALID', { detail: `${where} is not ${allowed}` })
}
