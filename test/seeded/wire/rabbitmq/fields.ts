/** A value of a table. Integers of all widths are numbers: RabbitMQ compares them so. */
export type TableValue = string | number | boolean | null | Uint8Array | readonly TableValue[] | Table
export type Table = { readonly [name: string]: TableValue }

/** Types of the fields of methods and properties (AMQP 0-9-1, 4.2.5). */
export interface FieldValues {
  octet: number
  short: number
  long: number
  longlong: number
  shortstr: string
  longstr: string
  bit: boolean
  table: Table
}
export type FieldType = keyof FieldValues

/** Reads fields, one after another. */
export class FieldReader {
  readonly #bytes: Buffer
  at = 0
  /** Of the octet that holds the bits being read; 0: none. */
  #bit = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length
  }

  read(type: FieldType): FieldValues[FieldType] {
    if (type !== 'bit') this.#bit = 0
    switch (type) {
      case 'octet':
        return this.#bytes.readUInt8(this.#skip(1))
      case 'short':
        return this.#bytes.readUInt16BE(this.#skip(2))
      case 'long':
        return this.#bytes.readUInt32BE(this.#skip(4))
      case 'longlong':
        return Number(this.#bytes.readBigUInt64BE(this.#skip(8)))
      case 'shortstr':
        return this.#take(this.#bytes.readUInt8(this.#skip(1))).toString()
      case 'longstr':
        return this.#long().toString()
      case 'bit':
        return this.#readBit()
      case 'table':
        return tableOf(this.#long())
    }
  }

  readValue(): TableValue {
    const tag = String.fromCharCode(this.#bytes.readUInt8(this.#skip(1)))
    switch (tag) {
      case 'S':
        return this.#long().toString()
      case 'x':
        return Buffer.from(this.#long())
      case 'F':
        return tableOf(this.#long())
      case 'A': {
        const items = new FieldReader(this.#long())
        const values: TableValue[] = []
        while (!items.isAtEnd) values.push(items.readValue())
        return values
      }
      case 't':
        return this.#bytes.readUInt8(this.#skip(1)) !== 0
      case 'V':
        return null
      case 'b':
        return this.#bytes.readInt8(this.#skip(1))
      case 'B':
        return this.#bytes.readUInt8(this.#skip(1))
      case 's':
        return this.#bytes.readInt16BE(this.#skip(2))
      case 'u':
        return this.#bytes.readUInt16BE(this.#skip(2))
      case 'I':
        return this.#bytes.readInt32BE(this.#skip(4))
      case 'i':
        return this.#bytes.readUInt32BE(this.#skip(4))
      case 'l':
      case 'T':
        return Number(this.#bytes.readBigInt64BE(this.#skip(8)))
      case 'd':
        return this.#bytes.readDoubleBE(this.#skip(8))
      case 'f':
        return this.#bytes.readFloatBE(this.#skip(4))
      default:
        throw new Error(`a table has a value of type ${tag}`)
    }
  }

  #readBit(): boolean {
    if (this.#bit === 0) this.#skip(1)
    const octet = this.#bytes.readUInt8(this.at - 1)
    const isSet = ((octet >> this.#bit) & 1) === 1
    this.#bit = (this.#bit + 1) % 8
    return isSet
  }

  #long(): Buffer {
    return this.#take(this.#bytes.readUInt32BE(this.#skip(4)))
  }

  #take(length: number): Buffer {
    const from = this.#skip(length)
    return this.#bytes.subarray(from, from + length)
  }

  #skip(length: number): number {
    const from = this.at
    this.at += length
    return from
  }
}

function tableOf(bytes: Buffer): Table {
  const reader = new FieldReader(bytes)
  const table: Record<string, TableValue> = {}
  while (!reader.isAtEnd) {
    const name = reader.read('shortstr') as string
    table[name] = reader.readValue()
  }
  return table
}

/** Writes fields, one after another. */
export class FieldWriter {
  readonly #parts: Buffer[] = []
  #bits: boolean[] = []

  write(type: FieldType, value: FieldValues[FieldType]): void {
    if (type === 'bit') {
      this.#bits.push(value as boolean)
      return
    }
    this.#endBits()
    if (type === 'shortstr') {
      const text = Buffer.from(value as string)
      this.#parts.push(integer(1, text.length), text)
    } else if (type === 'longstr') this.#long(Buffer.from(value as string))
    else if (type === 'table') this.#long(encodeTable(value as Table))
    else this.#parts.push(integer(WIDTHS[type], value as number))
  }

  bytes(): Buffer {
    this.#endBits()
    return Buffer.concat(this.#parts)
  }

  #long(bytes: Buffer): void {
    this.#parts.push(integer(4, bytes.length), bytes)
  }

  #endBits(): void {
    for (let from = 0; from < this.#bits.length; from += 8) {
      const octet = this.#bits.slice(from, from + 8).reduce((sum, isSet, at) => sum + (isSet ? 1 << at : 0), 0)
      this.#parts.push(integer(1, octet))
    }
    this.#bits = []
  }
}

const WIDTHS = { octet: 1, short: 2, long: 4, longlong: 8 } as const

function integer(width: number, value: number): Buffer {
  const bytes = Buffer.alloc(width)
  if (width === 8) bytes.writeBigUInt64BE(BigInt(value))
  else bytes.writeUIntBE(value, 0, width)
  return bytes
}

function encodeTable(table: Table): Buffer {
  return Buffer.concat(
    Object.entries(table).flatMap(([name, value]) => {
      const text = Buffer.from(name)
      return [integer(1, text.length), text, encodeValue(value)]
    }),
  )
}

/** Of what the model itself says: texts, tables, flags and whole numbers of 64 bits. */
export function encodeValue(value: TableValue): Buffer {
  const tagged = (tag: string, bytes: Buffer) => Buffer.concat([Buffer.from(tag), integer(4, bytes.length), bytes])
  if (typeof value === 'string') return tagged('S', Buffer.from(value))
  if (typeof value === 'boolean') return Buffer.from([0x74, value ? 1 : 0])
  if (typeof value === 'number') return Buffer.concat([Buffer.from('l'), integer(8, value)])
  if (value === null || value instanceof Uint8Array || Array.isArray(value))
    throw new Error('the model says no such value')
  return tagged('F', encodeTable(value as Table))
}
