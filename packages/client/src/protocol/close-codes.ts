/**
 * 4500-4999, and the codes of RFC 6455 §7.4.1 for peers that do not understand each other: the same bytes would fail
 * again.
 */
const TERMINAL = /^(4[5-9]..|10(0[2379]|10))$/

/**
 * Whether a client reconnects after this close code [P-10.1]: not after 4500-4999 and the protocol errors of RFC 6455,
 * but after everything else (4000-4499, 1000, 1001, 1006, 1008, 1011-1015).
 */
export function isReconnectable(closeCode: number): boolean {
  return !TERMINAL.test(`${closeCode}`)
}
