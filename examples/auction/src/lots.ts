const LOTS = ['brass telescope', 'walnut desk', 'silver teapot', 'sea chart', 'pocket watch', 'blue vase', 'oak chest']

/** An id for a new item that says what it is: `brass-telescope-4f2`. */
export function newLot(): string {
  const lot = LOTS[Math.floor(Math.random() * LOTS.length)] as string
  return `${lot.replaceAll(' ', '-')}-${crypto.randomUUID().slice(0, 3)}`
}

/** What people call an item: its id without the number, if it is one of ours. */
export function nameOf(id: string): string {
  const words = id.split('-')
  const lot = words.slice(0, -1).join(' ')
  if (!LOTS.includes(lot)) return id
  return `${lot[0]?.toUpperCase()}${lot.slice(1)} no. ${words.at(-1)}`
}
