"""Names of icons by what they show and what people call them, in English and Chinese: one row a shape.

The first name of a row is the shape's own, by which its drawings stand in `icons.npz`; after it come words for what
it shows and for what it means. One word may mean several shapes: "back" is an arrow here and a chevron there.
"""

from __future__ import annotations

import difflib

from mcpboard.host.vision.text_match import plain

_ROWS = """
settings, gear, cog, cogwheel, preferences, options, configuration, 设置, 齿轮, 选项, 偏好设置
sliders, adjust, tune, equalizer, controls, filter, 调节, 滑块, 控制, 均衡器
search, magnifier, magnifying glass, loupe, find, 搜索, 查找, 放大镜
menu, hamburger, navigation drawer, three lines, 菜单, 三条线
more, ellipsis, three dots, overflow, dots, 更多, 三个点, 省略号
more vertical, more, overflow, three dots, vertical dots, kebab, 更多, 竖三点
grid, apps, tiles, launcher, all apps, 网格, 应用, 宫格
list, bullets, list view, 列表, 清单
home, house, start page, 主页, 首页, 房子, 家
arrow left, back, left, previous, return, 返回, 后退, 左, 左箭头, 上一页
arrow right, forward, right, next, 前进, 右, 右箭头, 下一页
arrow up, up, 上, 上箭头, 向上
arrow down, down, 下, 下箭头, 向下
chevron left, back, left, previous, return, 返回, 后退, 左
chevron right, forward, right, next, disclosure, 前进, 右, 进入
chevron up, collapse, up, 收起, 向上
chevron down, dropdown, drop down, down, 下拉, 展开, 向下
close, x, cross, cancel, dismiss, clear, 关闭, 叉, 取消
close circle, clear, cancel, clear text, 清除, 关闭, 取消
plus, add, new, create, 添加, 加号, 新建, 增加
plus circle, add, new, 添加, 新建
minus circle, remove, 移除, 减号, 减少
check, tick, done, ok, confirm, checkmark, 勾, 完成, 确认, 对勾
check circle, done, success, selected, 完成, 成功, 已选择
edit, pencil, pen, modify, rename, 编辑, 铅笔, 修改
compose, write, new message, edit, note, 撰写, 写, 编辑
delete, trash, bin, trash can, garbage, dustbin, rubbish, 删除, 垃圾桶, 回收站
share, share nodes, 分享, 共享, 转发
share box, share, export, 分享, 导出, 共享
download, save to device, 下载
upload, 上传
refresh, reload, rotate, 刷新, 重新加载, 旋转
sync, refresh, synchronise, synchronize, update, two arrows, 同步, 刷新, 更新
undo, reply, back, 撤销, 撤回, 回复
mail, email, e-mail, envelope, letter, 邮件, 邮箱, 信封
message, chat, comment, sms, speech bubble, messages, 消息, 短信, 聊天, 评论, 信息
message round, chat, comment, message, speech bubble, messages, 消息, 聊天, 评论, 信息, 微信
send, paper plane, submit, 发送, 纸飞机
phone, call, telephone, dial, handset, dialer, 电话, 拨号, 通话, 拨打
phone off, hang up, end call, decline, 挂断, 结束通话
person, user, profile, account, me, avatar, 个人, 用户, 我, 账户, 头像, 我的
people, users, group, friends, team, contacts, 群组, 朋友, 联系人, 用户组, 好友
person add, add friend, add user, invite, new contact, 添加好友, 添加用户, 邀请, 加好友
contacts, address book, 通讯录, 联系人, 电话本
heart, like, love, favourite, favorite, 喜欢, 爱心, 收藏, 心, 点赞
star, favourite, favorite, rate, rating, 星, 星星, 收藏, 评分, 星标
bookmark, save, 书签, 收藏
thumbs up, like, thumb up, 赞, 点赞, 大拇指
thumbs down, dislike, thumb down, 踩, 不喜欢
bell, notifications, notification, alerts, ring, 通知, 铃铛, 提醒, 铃声
bell off, mute notifications, do not disturb, 关闭通知, 静音, 免打扰
calendar, date, schedule, event, 日历, 日期, 日程
clock, time, 时钟, 时间
alarm, alarm clock, 闹钟
timer, stopwatch, 计时器, 秒表, 倒计时
hourglass, wait, loading, 沙漏, 等待
camera, photo, take photo, take picture, 相机, 拍照, 照相机
image, photo, picture, gallery, photos, album, 图片, 照片, 相册, 图库
video, camcorder, video call, record, 视频, 摄像, 视频通话, 录像
film, movie, 电影, 影片, 胶片
music, note, song, audio, 音乐, 歌曲, 音符
microphone, mic, voice, dictation, 麦克风, 话筒, 语音
microphone off, mute, mic off, unmute, 静音, 关闭麦克风
volume, speaker, sound, loud, volume up, 音量, 声音, 扬声器, 喇叭
volume off, mute, silent, speaker off, 静音, 关闭声音
play, start, resume, triangle, 播放, 开始, 继续
pause, 暂停
stop, square, 停止, 方块
skip next, next track, next song, next, 下一首, 下一曲
skip previous, previous track, previous song, previous, 上一首, 上一曲
fast forward, forward, 快进
rewind, fast backward, 快退, 倒带
shuffle, random, 随机, 随机播放
repeat, loop, 循环, 重复
wifi, wi-fi, wireless, wlan, 无线, 无线网络, 无线局域网
wifi off, no wifi, offline, 无线已关闭, 离线
bluetooth, 蓝牙
airplane, plane, flight, airplane mode, flight mode, 飞机, 飞行模式, 航班
battery, power level, 电池, 电量
battery charging, charging, 充电
flashlight, torch, 手电筒
signal, cellular, mobile data, reception, bars, 信号, 移动数据, 蜂窝
lock, locked, password, padlock, private, secure, 锁, 锁定, 密码, 加密
unlock, unlocked, open lock, 解锁, 开锁
key, password, passkey, 钥匙, 密钥
eye, view, show, visible, show password, 眼睛, 显示, 查看, 可见
eye off, hide, hidden, hide password, invisible, 隐藏, 不可见
shield, security, protection, privacy, 盾牌, 安全, 隐私, 保护
fingerprint, touch id, biometric, 指纹
location, place, map pin, marker, gps, position, 位置, 定位, 地点
map, 地图
navigation, navigate, location arrow, directions, 导航, 方向
compass, explore, discover, safari, 指南针, 发现, 探索
globe, language, web, internet, world, browser, earth, website, 地球, 网络, 语言, 浏览器, 网页
link, url, chain, hyperlink, copy link, 链接, 网址
paperclip, attach, attachment, clip, 附件, 回形针
copy, duplicate, 复制, 拷贝
cut, scissors, 剪切, 剪刀
paste, clipboard, 粘贴, 剪贴板
save, floppy, disk, diskette, 保存, 软盘
file, document, page, blank page, 文件, 文档
file text, document, text file, notes, page, article, 文档, 文件, 文章, 笔记
folder, directory, files, 文件夹, 目录, 文件
archive, box, 归档, 存档
inbox, tray, 收件箱
printer, print, 打印, 打印机
cart, shopping cart, basket, trolley, 购物车
bag, shopping bag, shop, 购物袋, 购物
credit card, card, payment, pay, bank card, 信用卡, 银行卡, 支付, 付款
gift, present, 礼物, 礼品
tag, label, price, price tag, 标签, 价格
qr code, qr, 二维码
scan, scanner, viewfinder, scan code, 扫描, 扫一扫, 扫码
sun, brightness, light mode, day, sunny, 太阳, 亮度, 白天, 晴
moon, night, dark mode, sleep, do not disturb, 月亮, 夜间, 深色模式, 睡眠, 勿扰
cloud, weather, icloud, 云, 天气, 云端
flash, lightning, bolt, thunder, quick, 闪光灯, 闪电
lightbulb, bulb, idea, light, lamp, tip, 灯泡, 灯, 提示
power, shut down, power off, on off, turn off, 电源, 关机, 开关
info, information, about, details, 信息, 关于, 详情
help, question, question mark, support, faq, 帮助, 问号, 疑问
warning, alert, caution, exclamation triangle, 警告, 注意
error, exclamation, alert, important, 错误, 感叹号, 重要
flag, report, 旗帜, 旗, 标记, 举报
filter, funnel, 筛选, 过滤, 漏斗
sort, order, up down, 排序, 上下
expand, full screen, enlarge, fullscreen, maximise, maximize, 展开, 全屏, 放大
fullscreen, full screen, maximise, maximize, 全屏, 最大化
log out, logout, sign out, exit, leave, 退出, 登出, 注销, 退出登录
log in, login, sign in, enter, 登录, 登入, 进入
external link, open in new, open external, launch, 外部链接, 打开, 在新窗口打开
keyboard, 键盘
backspace, delete, erase, delete key, 退格, 删除
smartphone, mobile, phone, cell phone, device, 手机, 移动设备
laptop, notebook, computer, 笔记本, 电脑
monitor, desktop, screen, display, computer, 显示器, 屏幕, 电脑, 桌面
headphones, earphones, listen, 耳机, 听
headset, customer service, support, 客服, 耳麦
gamepad, game, games, controller, play games, 游戏, 手柄
robot, bot, ai, android, 机器人
book, read, reader, library, books, 书, 阅读, 图书
news, newspaper, 新闻, 报纸
code, developer, source, brackets, 代码, 开发
terminal, console, shell, command line, 终端, 命令行
bug, debug, insect, 错误报告, 虫子, 调试
tool, wrench, tools, repair, spanner, maintenance, 工具, 扳手, 维修
paint, palette, colour, color, theme, art, 调色板, 颜色, 主题
crop, trim, 裁剪, 剪裁
magic, wand, magic wand, enhance, auto, 魔法, 魔棒, 美化
sparkles, ai, new, stars, magic, assistant, 闪光, 人工智能, 智能
smile, emoji, smiley, happy, face, sticker, 笑脸, 表情, 微笑
car, drive, taxi, vehicle, ride, 汽车, 车, 打车, 驾车
bus, public transport, transit, 公交, 巴士, 公共汽车
restaurant, food, dining, fork and knife, eat, 餐厅, 美食, 餐饮
coffee, cup, cafe, tea, drink, 咖啡, 杯子
fire, flame, hot, trending, 火, 火焰, 热门
water drop, drop, water, liquid, 水滴, 水
leaf, nature, plant, eco, 叶子, 植物, 环保
thermometer, temperature, 温度计, 温度
umbrella, rain, 雨伞, 伞
trophy, cup, award, prize, achievement, 奖杯, 成就
chart, bar chart, statistics, analytics, stats, 图表, 统计, 柱状图
pie chart, 饼图
trending up, growth, trend, stocks, 上升, 趋势, 股票
database, storage, 数据库
bank, landmark, museum, government, 银行, 政府
building, office, company, city, 建筑, 大楼, 公司
store, shop, storefront, market, 商店, 店铺
briefcase, work, business, job, 公文包, 工作
graduation, school, education, study, learn, 毕业帽, 学校, 教育, 学习
at, mention, at sign, 提及, 艾特
hash, hashtag, number sign, topic, 井号, 话题
percent, discount, 百分比, 折扣
dollar, money, price, currency, 美元, 钱, 货币
history, recent, past, 历史, 历史记录, 最近
pin, pushpin, thumbtack, stick, 图钉, 置顶, 固定
layers, stack, 图层, 层
cast, screen mirroring, chromecast, airplay, 投屏, 投射
sim card, sim, 卡, 手机卡
translate, language, translation, 翻译, 语言
text, type, font, letter, 文字, 字体
"""

NEAREST = 0.8  # of 1; a slip of the pen, no other word

SHAPES = tuple(row.split(", ")[0] for row in _ROWS.strip().splitlines())
SHAPES_BY_WORD: dict[str, set[str]] = {}
for _row in _ROWS.strip().splitlines():
    for _word in _row.split(", "):
        SHAPES_BY_WORD.setdefault(plain(_word), set()).add(_row.split(", ")[0])


def shapes_called(name: str) -> frozenset[str]:
    """Return the shapes that people mean by `name`, or by the word nearest to it.

    A word that nobody uses stands for itself: it may name an icon of the user's own.
    """
    wanted = plain(name).removesuffix(" icon").removesuffix("图标").strip()
    if wanted in SHAPES_BY_WORD:
        return frozenset(SHAPES_BY_WORD[wanted])
    nearest = difflib.get_close_matches(wanted, SHAPES_BY_WORD, 1, NEAREST)
    return frozenset({wanted}.union(*(SHAPES_BY_WORD[word] for word in nearest)))


def meant_by(text: str) -> frozenset[str]:
    """Return the shapes that exactly this text names or means; none for words that nobody uses."""
    return frozenset(SHAPES_BY_WORD.get(plain(text), ()))
