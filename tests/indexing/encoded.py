"""Sources as people write them in encodings other than UTF-8: each text in each of its encodings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_ENCODINGS = {
    "zh": ("gbk", "gb18030"),
    "zh-Hant": ("big5", "cp950"),
    "ko": ("euc_kr", "cp949"),
    "ja": ("cp932", "euc_jp"),
    "ru": ("cp1251", "koi8_r"),
    "de": ("latin_1", "cp1252"),
    "fr": ("latin_1", "cp1252"),
    "es": ("latin_1", "cp1252"),
}

_COMMENTS = {
    "zh": (
        "还款服务", "计算利息", "查询用户的订单列表", "如果余额不足则返回错误，否则扣款并记录日志。",
        "该方法用于初始化数据库连接，请不要在循环中调用；超时时间默认为三十秒，可以通过配置文件修改。",
    ),
    "zh-Hant": (
        "還款服務", "計算利息", "查詢使用者的訂單列表", "如果餘額不足則回傳錯誤，否則扣款並記錄日誌。",
        "這個方法用於初始化資料庫連線，請不要在迴圈中呼叫；逾時時間預設為三十秒，可以透過設定檔修改。",
    ),
    "ko": (
        "상환 서비스", "이자 계산", "사용자의 주문 목록을 조회한다",
        "잔액이 부족하면 오류를 반환하고, 그렇지 않으면 출금한 뒤 기록을 남긴다.",
        "이 메서드는 데이터베이스 연결을 초기화합니다. 반복문 안에서 호출하지 마십시오. 제한 시간은 삼십 초입니다.",
    ),
    "ja": (
        "返済サービス", "利息を計算する", "ユーザーの注文一覧を取得する",
        "残高が足りない場合はエラーを返し、そうでなければ引き落として記録します。",
        "このメソッドはデータベース接続を初期化します。ループの中で呼び出さないでください。既定のタイムアウトは三十秒です。",
    ),
    "ru": (
        "Служба погашения", "расчёт процентов", "Возвращает список заказов пользователя",
        "Если средств недостаточно, вернуть ошибку, иначе списать сумму и записать в журнал.",
        "Этот метод открывает соединение с базой данных. Не вызывайте его в цикле: ожидание длится тридцать секунд.",
    ),
    "de": (
        "Rückzahlung für Kunden", "Größe prüfen", "Gibt die Aufträge eines Nutzers zurück",
        "Wenn das Guthaben nicht genügt, wird ein Fehler zurückgegeben, sonst abgebucht und für später vermerkt.",
        "Diese Methode öffnet die Verbindung zur Datenbank. Nicht in Schleifen aufrufen; endet nach dreißig Sekunden.",
    ),
    "fr": (
        "Service de remboursement à crédit", "Calcule les intérêts", "Renvoie la liste des commandes déjà payées",
        "Si le solde est insuffisant, une erreur est renvoyée ; sinon le débit est effectué et journalisé.",
        "Cette méthode ouvre la connexion à la base de données. Ne pas l'appeler en boucle : délai de trente secondes.",
    ),
    "es": (
        "Servicio de devolución", "Calcula el interés del año", "Devuelve la lista de pedidos según el usuario",
        "Si el saldo no es suficiente, se devolverá un error; si no, se cobrará y quedará anotado en el diario.",
        "Este método abre la conexión con la base de datos. No lo llame en un bucle: el límite es de treinta segundos.",
    ),
}  # fmt: skip

_SOURCES = {
    "Repay.java": "public class Repay {{\n    // {0}\n    int pay(int x) {{\n        return x + 1;\n    }}\n}}\n",
    "repay.c": '#include <stdio.h>\n\n/* {0} */\nint pay(int x) {{\n    printf("%d\\n", x);\n    return x;\n}}\n',
    "repay.py": 'def pay(x):\n    """{0}"""\n    return x\n',
    "repay.sql": "-- {0}\nCREATE TABLE pay (id INT PRIMARY KEY, amount INT);\n",
    "repay.md": "# Pay\n\nSee `pay(x)`.\n\n{0}\n",
    "repay.txt": "See pay(x), x > 0.\n{0}\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A file: its name, its text with `\n` between lines, its bytes and what they are written in."""

    name: str
    text: str
    data: bytes
    encoding: str
    language: str


def encoded() -> Iterator[Encoded]:
    """Each source with each comment of each language, in each encoding of it, with both line ends."""
    for language, encodings in _ENCODINGS.items():
        for comment in _COMMENTS[language]:
            for name, source in _SOURCES.items():
                text = source.format(comment)
                for encoding in encodings:
                    for end in ("\n", "\r\n"):
                        data = text.replace("\n", end).encode(encoding)
                        yield Encoded(name=name, text=text, data=data, encoding=encoding, language=language)
