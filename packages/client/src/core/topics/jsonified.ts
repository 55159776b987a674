/** Types that JSON keeps, and types that it cannot have: functions, bigints, the members of bytes. */
type Unchanged =
  | string
  | number
  | boolean
  | bigint
  | symbol
  | null
  | undefined
  | ArrayBufferView
  | ((...args: never) => unknown)

/** A list. A mapped type would ask for its elements at once, and never end with `type Tree = string | Tree[]`. */
type JsonList<T extends readonly unknown[]> = number extends T['length']
  ? T extends unknown[]
    ? Json<T[number]>[]
    : readonly Json<T[number]>[]
  : { [K in keyof T]: Json<T[K]> }

/** `any` is one branch, not all. */
type Json<T> = 0 extends 1 & T
  ? T
  : T extends Unchanged
    ? T
    : T extends { toJSON(): infer J }
      ? Json<J>
      : T extends readonly unknown[]
        ? JsonList<T>
        : T extends object
          ? { [K in keyof T]: Json<T[K]> }
          : T

/**
 * A value as it arrives over JSON: a `Date`, or another object with `toJSON`, is the result of that call. A type that JSON
 * keeps remains itself, with its name.
 */
export type Jsonified<T> = [T] extends [Json<T>] ? T : Json<T>
