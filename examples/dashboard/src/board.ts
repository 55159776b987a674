import { nameOf } from './names'

type Row = [row: HTMLElement, name: HTMLElement, price: HTMLElement]

/** A row for each price, with its name. */
export class Board {
  readonly #parent: HTMLElement
  readonly #boxes = new Map<string, HTMLElement>()

  constructor(selector: string) {
    this.#parent = document.querySelector(selector) as HTMLElement
  }

  show(key: string, price: number): void {
    const box = this.#boxOf(key)
    const text = price.toFixed(2)
    const change = Number(text) - Number(box.textContent || text)
    if (change !== 0) box.dataset.trend = change > 0 ? 'up' : 'down'
    box.textContent = text
  }

  hide(key: string): void {
    this.#boxes.get(key)?.parentElement?.remove()
    this.#boxes.delete(key)
  }

  setStale(isStale: boolean): void {
    this.#parent.classList.toggle('is-stale', isStale)
  }

  #boxOf(key: string): HTMLElement {
    const known = this.#boxes.get(key)
    if (known !== undefined) return known
    const [row, name, box] = ['div', 'span', 'span'].map((tag) => document.createElement(tag)) as Row
    row.className = 'row'
    // They arrive in any order.
    row.style.order = key.split('.').at(-1) ?? ''
    name.textContent = nameOf(key)
    box.className = 'price'
    box.dataset.key = key
    row.append(name, box)
    this.#boxes.set(key, box)
    this.#parent.append(row)
    return box
  }
}
