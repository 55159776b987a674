/** Units that an append may tear apart: several bytes, and halves of surrogate pairs. */
const UNITS = ['a', 'é', '漢', '\ud83d', '\ude00', '👩‍👩‍👧', '\n', '"', '\\', '\u0000', ' words', 'x'.repeat(300)]
const MAX_UNITS = 4

/** What a writer may append. */
export function drawText(random: () => number): string {
  let text = ''
  for (let count = 1 + Math.floor(random() * MAX_UNITS); count > 0; count--)
    text += UNITS[Math.floor(random() * UNITS.length)]
  return text
}
