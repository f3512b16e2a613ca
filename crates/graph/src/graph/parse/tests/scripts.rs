//! JavaScript and TypeScript.

use expect_test::expect;

use super::check;

const ECMASCRIPT: &str = r#"import Shop, { open as unlock, close } from "./shop";
import * as prices from './prices';
import "./effects";
export { till } from "./till";
export * from "./all";
export * as names from "./names";
const fs = require("fs"), { join, sep: s } = require("path");
export const LIMIT = 3;
export const total = (items) => { const local = sum(items); return local; };
function main() {
  const helper = function () { inner(); };
  const value = 1;
  new Shop().open(prices.of("x"));
}
export default class Market extends Shop {
  #doors = 2;
  onOpen = () => this.#count(1);
  constructor() { super(); this.shop.open(); }
  static async close() {}
  #count(n) { return n; }
}
const api = { get() { return fetch(); }, set: () => {} };
var Old = class {};
Market.prototype.late = function () {};
"#;

#[test]
fn javascript() {
    let expected = expect![[r#"
            function fs 7-7
            function join 7-7
            function s 7-7
            function LIMIT 8-8
            function total 9-9
            function main 10-14
            function main::helper 11-11
            class Market 15-21
            method Market::onOpen 17-17
            method Market::constructor 18-18
            method Market::close 19-19
            method Market::#count 20-20
            function api 22-22
            function api::get 22-22
            function api::set 22-22
            class Old 23-23
            function late 24-24
            Market is a Shop
            fs calls require
            - calls require
            total calls sum
            main::helper calls inner
            main calls Shop
            main calls ?.open
            main calls prices.of
            Market::onOpen calls own.#count
            Market::constructor calls base.constructor
            Market::constructor calls this.shop.open
            api::get calls fetch
            import ./shop - Shop
            import ./shop open unlock
            import ./shop close close
            import ./prices - prices
            import ./till till till exported
            import ./all - * exported
            import ./names - names exported
            import fs - fs
            import path join join
            import path sep s
            import  Market default exported
        "#]];
    for file in ["shop.js", "shop.ts"] {
        check(file, ECMASCRIPT, &expected);
    }
}

#[test]
fn typescript() {
    check(
        "more.ts",
        r"import type { Till } from './till';
import legacy = require('./legacy');
interface Open { open(): void; name: string }
enum Colour { Red }
type Name = string | null;
abstract class Base { abstract make(): Name; private run = (): void => { this.make!(); }; }
export declare const total: number;
declare global { var shop: Till; }
declare module 'till' { const open: boolean; export let count: number; }
namespace inner { export const A = 1; export function f<T>(): T { return g<T>(A); } }
function over(a: string): void;
function over(a: number): void;
function over(a: any) {}
declare function outside(): void;
@Component({ selector: pick() })
export class Page {}
",
        &expect![[r#"
            class Open 3-3
            method Open::open 3-3
            class Colour 4-4
            function Name 5-5
            class Base 6-6
            method Base::make 6-6
            method Base::run 6-6
            function total 7-7
            function shop 8-8
            function 'till' 9-9
            function 'till'::open 9-9
            function 'till'::count 9-9
            function inner 10-10
            function inner::A 10-10
            function inner::f 10-10
            function over 11-11
            function over 12-12
            function over 13-13
            function outside 14-14
            class Page 16-16
            inner::f calls g
            - calls Component
            - calls pick
            import ./till Till Till
            import ./legacy - legacy
        "#]],
    );
}

#[test]
fn components() {
    let text = r"export const Page = () => <div><Shop.Door /><Till>{open()}</Till></div>;
function Till() { return <input />; }
";
    check(
        "page.jsx",
        text,
        &expect![[r#"
        function Page 1-1
        function Till 2-2
        Page calls Shop.Door
        Page calls Till
        Page calls open
    "#]],
    );
    check(
        "page.tsx",
        text,
        &expect![[r#"
        function Page 1-1
        function Till 2-2
        Page calls Shop.Door
        Page calls Till
        Page calls open
    "#]],
    );
}

#[test]
fn what_has_no_name_of_its_own_is_the_default() {
    let text = "export default class extends Shop { open() { ring(); } }\n";
    let expected = expect![[r#"
        class default 1-1
        method default::open 1-1
        default is a Shop
        default::open calls ring
    "#]];
    check("a.js", text, &expected);
    check("a.ts", text, &expected);
    check(
        "b.js",
        "export default function (items) {\n  function inner() {}\n  inner();\n}\n",
        &expect![[r#"
            function default 1-4
            function default::inner 2-2
            default calls inner
        "#]],
    );
    check(
        "c.js",
        "export default define({\n  open() {}\n});\n",
        &expect![[r#"
            function default 1-3
            function default::open 2-2
            default calls define
            import  - default
        "#]],
    );
}

#[test]
fn what_older_modules_export_has_its_own_name() {
    check(
        "a.js",
        "module.exports = class Shop extends Market {\n  open() { ring(); }\n};\n",
        &expect![[r#"
            class Shop 1-3
            method Shop::open 2-2
            Shop is a Market
            Shop::open calls ring
            import  Shop exports exported
        "#]],
    );
    check(
        "b.js",
        "exports = module.exports = function open() { function inner() {} };\n",
        &expect![[r#"
            function open 1-1
            function open::inner 1-1
            import  open exports exported
        "#]],
    );
    check(
        "c.ts",
        "module.exports = exports = shop;\nother.exports = till;\n",
        &expect![[r#"
            import  shop exports exported
        "#]],
    );
    check(
        "d.js",
        "module.exports = require('./shop');\n",
        &expect![[r#"
            - calls require
            import ./shop - exports exported
        "#]],
    );
    check(
        "e.ts",
        "module.exports = class { open() {} };\n",
        &expect![[r#"
            class exports 1-1
            method exports::open 1-1
        "#]],
    );
    check(
        "f.js",
        "module.exports = async () => ring();\nlate.exports = function open() {};\n",
        &expect![[r#"
            function exports 1-1
            function exports 2-2
            exports calls ring
        "#]],
    );
}

#[test]
fn what_is_required_may_be_a_name_of_the_other_file() {
    check(
        "a.js",
        "const open = require('./shop').unlock;
exports.till = require('./till');
module.exports.count = require('./till').sum;
module.exports = require('./town').shop;
other.late = require('./late');
exports.far.away = require('./far');
const all = load('./shop').all;
",
        &expect![[r#"
            function open 1-1
            function all 7-7
            open calls require
            - calls require
            - calls require
            - calls require
            - calls require
            - calls require
            all calls load
            import ./shop unlock open
            import ./till - till exported
            import ./till sum count exported
            import ./town shop exports exported
        "#]],
    );
}

#[test]
fn constants_are_taken_out_of_objects() {
    let text = "export const {\n  open,\n  shut: close,\n  ring = 1,\n} = make();
const [first, second] = make(), { path } = require('./till');
var { old } = make();
export var [late] = make();
function main() { const { inner } = make(); }
";
    check(
        "a.ts",
        text,
        &expect![[r#"
            function open 2-2
            function close 3-3
            function ring 4-4
            function first 6-6
            function second 6-6
            function path 6-6
            function old 7-7
            function late 8-8
            function main 9-9
            - calls make
            - calls make
            - calls require
            - calls make
            - calls make
            main calls make
            import ./till path path
        "#]],
    );
}

#[test]
fn constants_survive_what_the_grammar_does_not_know() {
    let text = "const LIMIT = 3;\nexport const open = wrap(() => {});\n((\n";
    check(
        "a.ts",
        text,
        &expect![[r#"
            function LIMIT 1-1
            function open 2-2
            open calls wrap
        "#]],
    );
}

#[test]
fn members_of_a_type_need_no_semicolons() {
    let text = r#"export const pipe: {
  <A>(a: A): A
  // Two.
  <A, B extends A>(a: A, ab: (a: A) => B): A | B
  /**
   * Three.
   */
  <
    A,
    const C extends "c"
  >(a: A): Kept<A>["a"]
  <A = never>(): [A]
} = dual(
  (a) => a,
  <A, B>(a: A) =>
    <C extends B>(c: C) => follow(a, c)
)
export function flow() { return pipe(1); }
"#;
    check(
        "pipe.ts",
        text,
        &expect![[r#"
        function pipe 1-17
        function flow 18-18
        pipe calls dual
        pipe calls follow
        flow calls pipe
    "#]],
    );
}

#[test]
fn a_type_parameter_may_be_called_type() {
    let text = "export type Fee<type> = (type extends 'legacy' ? Legacy : never) & Base;
export function pay(type: string) { return weigh(type); }
";
    check(
        "fee.ts",
        text,
        &expect![[r#"
            function Fee 1-1
            function pay 2-2
            pay calls weigh
        "#]],
    );
}
