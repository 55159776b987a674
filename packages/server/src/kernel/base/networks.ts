import { BlockList, isIP, isIPv6 } from 'node:net'
import { ipv4Of } from './ipv4.js'

/** Names of ranges that many networks use. */
const RANGES_BY_WORD: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1'],
  /** RFC 1918, RFC 6598, RFC 3927, RFC 4193 and RFC 4291 §2.5.6. */
  private: [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '100.64.0.0/10',
    '169.254.0.0/16',
    'fc00::/7',
    'fe80::/10',
  ],
}

const MAX_PREFIX = { 4: 32, 6: 128 } as const

/** Describes the allowed values if this is no address, no range (`10.0.0.0/8`) and no word; otherwise `undefined`. */
export function networkDefect(text: string): string | undefined {
  if (Object.hasOwn(RANGES_BY_WORD, text) || rangeOf(text) !== undefined) return undefined
  return `an address, a range such as 10.0.0.0/8 or fd00::/8, or one of ${Object.keys(RANGES_BY_WORD).join(', ')}`
}

/** Replaces words by the ranges that they stand for. */
export function rangesOf(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => (Object.hasOwn(RANGES_BY_WORD, text) ? (RANGES_BY_WORD[text] ?? []) : [text]))
}

export class Networks {
  readonly #ranges = new BlockList()
  /** First and last address. A look-up in a `BlockList` takes 5 us. */
  readonly #v4Ranges: (readonly [number, number])[] = []
  /** Some IPv6 range may contain IPv4 addresses, as `::/0` does. */
  #mapsV4 = false
  readonly #isEmpty: boolean

  /** @param texts Without a {@link networkDefect}. */
  constructor(texts: readonly string[]) {
    const ranges = rangesOf(texts)
    this.#isEmpty = ranges.length === 0
    for (const text of ranges) {
      const range = rangeOf(text)
      if (range === undefined) throw new TypeError(`${text} is not a range of addresses`)
      this.#ranges.addSubnet(range.address, range.prefix, isIPv6(range.address) ? 'ipv6' : 'ipv4')
      const v4 = ipv4Of(range.address)
      const size = 2 ** (MAX_PREFIX[4] - range.prefix)
      if (v4 !== undefined) this.#v4Ranges.push([v4 - (v4 % size), v4 - (v4 % size) + size - 1])
      else this.#mapsV4 ||= range.prefix > 96 ? /^(0|::ffff:)/i.test(range.address) : this.#ranges.check('0.0.0.0')
    }
  }

  /** Whether an address is in one of the ranges. An IPv4 address that arrived on an IPv6 socket counts as IPv4. */
  contains(remoteAddress: string): boolean {
    if (this.#isEmpty) return false
    const v4 = ipv4Of(remoteAddress)
    if (v4 !== undefined && !this.#mapsV4) return this.#v4Ranges.some(([first, last]) => first <= v4 && v4 <= last)
    const [address = ''] = remoteAddress.split('%')
    const family = isIP(address)
    return family !== 0 && this.#ranges.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

function rangeOf(text: string): { readonly address: string; readonly prefix: number } | undefined {
  const [, address = '', prefixText] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  if (family !== 4 && family !== 6) return undefined
  const prefix = prefixText === undefined ? MAX_PREFIX[family] : Number(prefixText)
  return prefix <= MAX_PREFIX[family] ? { address, prefix } : undefined
}
