import { type ErrorCode, errorCodes, specOf } from './errors.js'

/** RFC 6455 §7.4.1 codes that say the two ends do not understand each other: the same bytes would fail again. */
const TERMINAL_STANDARD_CODES: readonly number[] = [1002, 1003, 1007, 1009, 1010]

/**
 * Whether a client connects again after a close with this code [P-10.1]: 4500-4999 and the protocol errors of RFC 6455
 * are terminal, everything else (4000-4499, 1000, 1001, 1006, 1008, 1011-1015) is not.
 */
export function isReconnectable(closeCode: number): boolean {
  return !(closeCode >= 4500 && closeCode <= 4999) && !TERMINAL_STANDARD_CODES.includes(closeCode)
}

/** The close code that an error ends its connection with; `undefined` for an error that the connection survives. */
export function closeCodeOf(code: ErrorCode): number | undefined {
  return specOf(code).closeCode
}

/**
 * The error that a close code stands for, so that a close can be reported like any error; `undefined` for codes of
 * others.
 */
export function errorOfCloseCode(closeCode: number): ErrorCode | undefined {
  return errorCodes().find((code) => closeCodeOf(code) === closeCode)
}
